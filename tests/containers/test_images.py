"""Runs the steps of the Containerfiles in Debian roots; the resulting images run as a user other than root.

There is no container engine here, so stand-ins replace the two base images: a Debian that debootstrap makes, and for
Kafka's image a folder with Kafka's jars at ``/opt/kafka`` and the two scripts that ``broker.sh`` calls.
"""

import os
import re
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
import yaml

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.java.jars import broker_jars
from harness.kafka.admin import create_topic
from harness.kafka.node import KafkaNode
from harness.kafka.properties import write_properties
from harness.plugin import FENCE, ROOT, plugin_properties
from harness.system.image import Builder, Image, NoRoots, copy_root, debian_root, instructions
from harness.system.waiting import eventually
from tests.broker.support.seen import wait_for_rate
from tests.skips import COULD_NOT_RUN

FILES: Final = sorted((ROOT / "containers").glob("*.Containerfile"))
REGISTRY: Final = re.compile(r"^(?:[\w.-]+\.[\w-]+|localhost)(?::\d+)?/")
RATE: Final = 2e6
START: Final = "kafka-server-start.sh"
FORMAT: Final = "kafka-storage.sh"
#: Like Kafka's own scripts, these log to standard output, and the JVM takes the place of the script's process.
SCRIPT: Final = """#!/bin/sh
log=-Dlog4j2.configurationFile=/opt/kafka/config/log4j2.properties
exec java ${KAFKA_HEAP_OPTS:--Xmx512m} $log -cp "/opt/kafka/libs/*" %s "$@"
"""
#: A stand-in for ``microdnf install -y --setopt=... PACKAGES`` and ``microdnf clean all``.
MICRODNF: Final = """#!/bin/sh -e
[ "$1" = install ] || exit 0
apt-get update
apt-get install -y --no-install-recommends openjdk-21-jre-headless python3 python3-venv libpython3.13
"""


@pytest.fixture(scope="module")
def debian() -> Path:
    try:
        return debian_root("trixie")
    except NoRoots as error:
        pytest.skip(f"{COULD_NOT_RUN}{error}")


def kafka_home(home: Path) -> Path:
    """Fills the folder like that of Kafka's image, as far as these tests need it."""
    shutil.copytree(broker_jars(), home / "libs")
    (home / "bin").mkdir()
    (home / "config").mkdir()
    shutil.copy(ROOT / "harness/kafka/log4j2.properties", home / "config")
    for name, what in {START: "kafka.Kafka", FORMAT: "kafka.tools.StorageTool"}.items():
        script = home / "bin" / name
        script.write_text(SCRIPT % what, encoding="utf-8")
        script.chmod(0o755)
    return home


def build(name: str, tmp_path: Path, images: Mapping[str, Path], **arguments: str) -> Image:
    assert list((ROOT / "dist").glob("quotahost-*.whl")), "dist/ has no wheel: run `make wheel`"
    return Builder(ROOT, images, tmp_path / "root", arguments).build(ROOT / "containers" / f"{name}.Containerfile")


class Container(KafkaNode):
    """A node that is started by an image's entry point; its files are those inside the image."""

    image: Image

    @property
    def data_dirs(self) -> list[Path]:
        return [Path("/var/lib/kafka/data")]

    def launch(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        file = self.image.root / "etc/kafka/server.properties"
        write_properties(file, self.server_properties())
        file.chmod(0o644)  # like a mounted file, because the image has another user
        self.image.env["KAFKA_CLUSTER_ID"] = self.cluster_id
        self.launch_command(self.image.command_line(), os.environ)

    def stop(self, timeout: float = 120) -> int:
        """Ends the container's first process by SIGTERM, as an engine does."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGTERM)
        eventually(lambda: not self.running, timeout)
        code = self.exit_code
        self.kill()
        assert code is not None
        return code


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_image_ends_as_another_user_than_root_and_names_no_registry(file: Path) -> None:
    steps = list(instructions(file.read_text(encoding="utf-8")))
    assert [step.text for step in steps if step.name == "USER"][-1] in ("1000", "1001")
    images = [step.text.partition("=")[2] for step in steps if step.name == "ARG" and "IMAGE" in step.text]
    assert images
    assert not [image for image in images if REGISTRY.match(image)]
    assert not [step for step in steps if step.name == "FROM" and not step.text.startswith("${")]


@pytest.mark.long
def test_the_brokers_image_throttles_a_client_and_stops_in_good_order(debian: Path, tmp_path: Path) -> None:
    kafka_home(tmp_path / "kafka/opt/kafka")
    image = build("broker", tmp_path, {"apache/kafka:4.3.1": tmp_path / "kafka", "debian:trixie-slim": debian})
    assert image.run(["id", "-u"]).strip() == "1000"
    settings = {"python.executable": "/opt/quotahost/bin/python3", "static.produce": str(int(RATE))}
    properties = plugin_properties(settings | {"fence.authorizer": "none"}) | FENCE | QUICK_QUOTAS
    container = Container(tmp_path / "node", properties=properties)
    container.image = image
    for topic in ("first", "second"):  # at the second start the storage is formatted already
        with container as node:
            create_topic(node, topic)
            with ProducerLoad(node.client_config(client_id="c"), topic) as load:
                wait_for_rate(pytest.approx(RATE, rel=0.15), load)
                assert load.max_throttle() > 0
            assert node.stop() == 143, "the broker stops in good order on SIGTERM (128 + 15)"


@pytest.mark.long
def test_the_pipelines_image_finds_java_and_spark(debian: Path, tmp_path: Path) -> None:
    image = build("pipeline", tmp_path, {"debian:trixie-slim": debian})
    assert image.run(["id", "-u"]).strip() == "1000"
    assert "--checkpoint" in image.run([*image.entrypoint, *image.command])
    spark = "from pyspark.sql import SparkSession as S; print(S.builder.master('local').getOrCreate().range(3).count())"
    assert image.run(["/opt/quotahost/bin/python3", "-c", spark]).strip() == "3"


@pytest.mark.long
def test_the_steps_on_strimzis_image_put_jar_and_python_into_it(debian: Path, tmp_path: Path) -> None:
    """Strimzi's image isn't available here: Debian stands for Red Hat's system, and apt-get for its microdnf."""
    base = tmp_path / "strimzi"
    copy_root(debian, base)
    kafka_home(base / "opt/kafka")
    microdnf = base / "usr/local/bin/microdnf"
    microdnf.write_text(MICRODNF, encoding="utf-8")
    microdnf.chmod(0o755)
    name = "strimzi/kafka:1.2.0-kafka-4.3.1"
    image = build("strimzi", tmp_path, {name: base}, PYTHON="python3")
    assert image.run(["id", "-u"]).strip() == "1001"
    # Doctor checks the jar, the interpreter and its library, and the properties of the Kafka resource.
    documents = yaml.safe_load_all((ROOT / "conf/strimzi/kafka.yaml").read_text(encoding="utf-8"))
    config = next(each for each in documents if each["kind"] == "Kafka")["spec"]["kafka"]["config"]
    file = image.root / "etc/server.properties"
    write_properties(file, {name: str(value) for name, value in config.items()})
    file.chmod(0o644)
    told = image.run(["/opt/quotahost/bin/quotahost", "doctor", "--kafka-home", "/opt/kafka", "/etc/server.properties"])
    assert "libpython3.13" in told
    assert "/opt/kafka/libs/quotahost-" in told
