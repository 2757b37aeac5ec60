"""A Spark cluster: a master, two workers, and a driver whose files lie where all of them reach them.

All run on this machine, with executors in processes of their own, so a directory of it is the shared file system.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pyspark
import pytest

from harness.kafka.node import KafkaNode
from harness.system.ports import free_port
from harness.system.process import LoggedProcess
from quotahost.pipeline.main import submit_line
from quotahost.pipeline.options import Options
from tests.pipeline.driver.test_driver import Story

pytestmark = pytest.mark.driver
PATIENCE: Final = 240.0  # seconds
HOME: Final = Path(pyspark.__file__).parent
BEGINS: Final = r"run \d+ of cluster \S+ begins"
DEPLOY: Final = "org.apache.spark.deploy"


class Part(LoggedProcess):
    def __init__(self, directory: Path, name: str, *arguments: object) -> None:
        super().__init__(directory / f"{name}.log")
        kind = "master.Master" if name == "master" else "worker.Worker"
        command = [str(HOME / "bin/spark-class"), f"{DEPLOY}.{kind}", "--host", "127.0.0.1", *map(str, arguments)]
        environment = {"SPARK_WORKER_DIR": str(directory / name), "SPARK_LOCAL_IP": "127.0.0.1"}
        self.launch_command(command, os.environ | environment)


@contextmanager
def spark_cluster(directory: Path) -> Iterator[tuple[str, list[Part]]]:
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        master = Part(directory, "master", "--port", port, "--webui-port", free_port())
        stack.callback(master.kill)
        master.wait_for_log("Starting Spark master", PATIENCE)
        workers = []
        for name in ("worker-1", "worker-2"):
            worker = Part(directory, name, "--cores", 1, "--memory", "700m", "--webui-port", free_port(), url)
            stack.callback(worker.kill)
            workers.append(worker)
        for worker in workers:
            worker.wait_for_log("Successfully registered with master", PATIENCE)
        yield url, workers


@pytest.fixture
def node(tmp_path: Path) -> Iterator[KafkaNode]:
    with KafkaNode(tmp_path / "node") as node:
        yield node


class Submitted(LoggedProcess):
    """The line that ``--print-submit`` prints, run as it is."""

    def __init__(self, log: Path, options: Options, master: str) -> None:
        super().__init__(log)
        line = submit_line(options, master).replace("spark-submit", str(HOME / "bin/spark-submit"), 1)
        small = "--conf spark.executor.memory=512m --conf spark.driver.memory=700m --conf spark.driver.host=127.0.0.1"
        line = line.replace("--master", f"{small} --master", 1)
        self.launch_command(["bash", "-c", f"exec {line}"], os.environ | {"PYSPARK_PYTHON": sys.executable})


def test_state_and_history_outlive_a_worker_and_the_driver_and_lie_in_one_place(
    node: KafkaNode, tmp_path: Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    story = Story(node)
    with spark_cluster(tmp_path) as (url, workers):
        options = Options(
            bootstrap=node.bootstrap, checkpoint=f"file://{shared}/checkpoint", tick="1s", validity="10m",
        )  # fmt: skip
        driver = Submitted(tmp_path / "driver.log", options, url)
        try:
            driver.wait_for_log(BEGINS, PATIENCE)
            story.publish(2)
            story.wait()
            workers[0].kill()
            # Of a part of the brokers: the others' volumes have to come out of the state.
            story.publish(2, brokers=25)
            story.wait()
        finally:
            driver.kill()
        before = {path.name for path in (shared / "checkpoint/volumes/state").rglob("*.delta")}
        assert before, "the state doesn't lie in the shared directory"
        driver = Submitted(tmp_path / "again.log", options, url)
        try:
            driver.wait_for_log(BEGINS, PATIENCE)
            story.publish(1, brokers=12)
            story.wait()
        finally:
            driver.kill()
        assert not list((shared / "checkpoint").glob("*.set-aside-*")), "the state couldn't be read"
