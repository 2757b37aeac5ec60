"""A real Kafka node in KRaft mode, as a process of its own on loopback.

Tests, the demo and the benches run plugins inside such nodes. ``harness.kafka.settings`` says how a node is set up;
this module formats its storage, starts the JVM and waits until clients can use it.
"""

import os
from pathlib import Path
from typing import Final, NoReturn, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from harness.java.class_archive import kafka_archive
from harness.java.helper import helper
from harness.java.jars import DEFAULT_VERSION, broker_jars
from harness.java.jdk import class_path, harness_classes, program
from harness.kafka.properties import write_properties
from harness.kafka.settings import NodeSettings
from harness.system.process import LoggedProcess
from harness.system.waiting import eventually

_LOG_CONFIG: Final = Path(__file__).with_name("log4j2.properties")
# KafkaBroker.STARTED_MESSAGE: the controller has taken the broker into service, and all sockets are open.
_STARTED: Final = "Kafka Server started"
_QUIET: Final = {"log_level": 4}  # librdkafka logs the end of each client at level 6


class StartFailed(Exception):
    """The node ended during its start, or was not ready in time.

    Attributes:
        exit_code: the process's exit code; None if it was still running and was killed.
        log: everything that the node logged.
    """

    def __init__(self, exit_code: int | None, log: str) -> None:
        self.exit_code: Final = exit_code
        self.log: Final = log
        what = "was not ready in time" if exit_code is None else f"ended with exit code {exit_code}"
        tail = "\n".join(log.splitlines()[-40:])
        super().__init__(f"the node {what}; its log ends:\n{tail}")


class KafkaNode(NodeSettings, LoggedProcess):
    """A node that can be started, stopped, killed, and started again with its data; see NodeSettings.

    A ``with`` block starts the node and kills it at its end, since its data is not needed. A test that wants a clean
    shutdown calls ``stop()``. When this process dies, the node is killed.
    """

    def __post_init__(self) -> None:
        """Chooses the ports; starts nothing yet."""
        NodeSettings.__post_init__(self)
        LoggedProcess.__init__(self, self.directory / "node.log")

    def start(self, timeout: float = 120) -> Self:
        """Starts the node and waits until it is ready for clients.

        Raises:
            StartFailed: the node ended, or was not ready within timeout seconds and was killed.
        """
        self.launch()
        self.wait_until_ready(timeout)
        return self

    def launch(self) -> None:
        """Formats new storage and starts the node without waiting, because nodes of a cluster need each other."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if not (self.data_dirs[0] / "meta.properties").exists():
            self._format()
        write_properties(self.directory / "server.properties", self.server_properties())
        self.launch_command(self._command(), {**os.environ, **self.env})

    def wait_until_ready(self, timeout: float = 120) -> None:
        """Waits until the node logs that it has started and a client sees it in the cluster.

        Raises:
            StartFailed: the node ended, or was not ready within timeout seconds and was killed.
        """
        try:
            eventually(self._started_or_ended, timeout, poll=0.02)
            if not self.running:
                self._fail()
            if self.is_broker:
                self.wait_for_brokers({self.node_id}, timeout)
        except TimeoutError:
            self.dump_threads()
            self._fail()
        except BaseException:
            self.kill()
            raise

    def wait_for_brokers(self, ids: set[int], timeout: float = 120) -> None:
        """Waits until a client of this broker sees all brokers with these ids.

        Raises:
            TimeoutError: the client did not see them within timeout seconds.
        """

        def seen() -> bool:
            try:
                return ids <= self.broker_ids()
            except KafkaException:  # a broker ended while the client waited for its answer
                return False

        eventually(seen, timeout, f"brokers {ids} seen by broker {self.node_id}")

    def broker_ids(self) -> set[int]:
        """Returns the ids of the brokers that a client sees in the cluster."""
        admin = AdminClient(self.client_config(client_id="harness") | _QUIET)
        return {node.id for node in admin.describe_cluster(request_timeout=10).result().nodes}

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _format(self) -> None:
        """Writes meta.properties, and the users of SCRAM.

        The tool doesn't know the plugins' classes, so their properties are left out.
        """
        file = self.directory / "format.properties"
        write_properties(file, self.placement())
        code, output = helper(self.version).ask(
            "format", "--cluster-id", self.cluster_id, "--config", str(file), *self.scram_credentials()
        )
        if code != 0:
            raise StartFailed(code, output)

    def _command(self) -> list[str]:
        entries = [broker_jars(self.version), *self.classpath]
        entries += [harness_classes(self.version)] * self.probe
        command = [program("java"), f"-Xmx{self.heap}", "-Djava.awt.headless=true"]
        command += [f"-Dlog4j2.configurationFile={_LOG_CONFIG}", *self.jvm_options]
        if self.class_archive and self.version == DEFAULT_VERSION:
            command += [f"-XX:SharedArchiveFile={kafka_archive(self.version, self._run_once)}"]
        return [*command, "-cp", class_path(entries), "kafka.Kafka", str(self.directory / "server.properties")]

    def _run_once(self, directory: Path, jvm_option: str) -> None:
        node = KafkaNode(directory, version=self.version, jvm_options=[jvm_option], class_archive=False)
        node.start().stop()

    def _started_or_ended(self) -> bool:
        return _STARTED in self.log_text() or not self.running

    def _fail(self) -> NoReturn:
        code = self.exit_code
        self.kill()
        raise StartFailed(code, self.log_text())
