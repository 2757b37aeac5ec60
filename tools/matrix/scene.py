"""Each cell plays this scene: doctor, a broker with quotahost, a client that is throttled, a clean stop."""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.java.jars import BUILD, broker_jars
from harness.java.jdk import class_path, program
from harness.kafka.admin import create_topic
from harness.kafka.node import KafkaNode
from harness.kafka.properties import write_properties
from harness.kafka.settings import QUICK_START
from harness.plugin import FENCE, JAR, prefixed
from harness.system.waiting import eventually
from tools.matrix.cells import NEWEST
from tools.matrix.roots import Place

RATE: Final = 200_000  # bytes/s
CLEAN_EXIT: Final = 143  # the exit code of a JVM that stops in good order after SIGTERM
_STARTER: Final = """\
public final class Starter {
    public static void main(String[] args) {
        org.quotahost.python.Interpreter.start(org.quotahost.python.PythonEnvironment.of(args[0], false));
        System.out.println("Python runs in this JVM");
    }
}
"""


class PlacedNode(KafkaNode):
    """A node whose JVM runs in a place."""

    place: Place

    def _command(self) -> list[str]:
        return [*self.place.enter, self.place.java, *super()._command()[1:]]


def broker(place: Place, kafka: str, timeout: float = 120, jvm_options: Sequence[str] = QUICK_START) -> None:
    """Plays the scene on a broker.

    Args:
        place: where its JVM runs.
        kafka: its version.
        timeout: seconds for each of the start, the throttle time and the stop.
        jvm_options: further options of ``java``.

    Raises:
        RuntimeError: doctor found something wrong, or the stop was not clean.
        StartFailed: the broker did not start.
        TimeoutError: the client was not throttled, or the broker did not stop.
    """
    with tempfile.TemporaryDirectory(dir=_scratch()) as folder:
        settings = {"class": "org.quotahost.PythonQuotaCallback", "python.executable": place.python}
        settings |= {"static.scope": "client", "static.produce": str(RATE), "fence.authorizer": "none"}
        properties = prefixed(settings) | FENCE | QUICK_QUOTAS
        node = PlacedNode(
            Path(folder),
            version=kafka,
            classpath=[JAR],
            properties=properties,
            class_archive=False,
            jvm_options=jvm_options,
        )
        node.place = place
        _doctor(place, node)
        try:
            node.start(timeout)
            _throttled(node, timeout)
            code = node.stop(timeout)
        finally:
            node.kill()
        clean = (node.data_dirs[0] / ".kafka_cleanshutdown").exists()
        if code != CLEAN_EXIT or not clean or list(Path(folder).glob("*core*")):
            raise RuntimeError(f"the stop was not clean: exit code {code}\n{node.log.tail()}")


def _doctor(place: Place, node: KafkaNode) -> None:
    file = node.directory / "doctor.properties"
    write_properties(file, node.server_properties())
    place.run(place.python, "-m", "quotahost", "doctor", str(file), "--python", place.python)


def _throttled(node: KafkaNode, timeout: float) -> None:
    create_topic(node, "t")
    with ProducerLoad(node.client_config(client_id="eager"), "t") as load:
        eventually(lambda: load.max_throttle() > 0, timeout, "a throttle time told to the client")
        assert not load.errors, load.errors


def starter(place: Place, *options: str) -> None:
    """Starts Python by the attach library, in a JVM that has these options and does nothing else.

    Raises:
        RuntimeError: Python did not start, or the JVM did not end.
    """
    with tempfile.TemporaryDirectory(dir=_scratch()) as folder:
        source = Path(folder, "Starter.java")
        source.write_text(_STARTER)
        classes = class_path([JAR, broker_jars(NEWEST)])
        subprocess.run([program("javac"), "--release", "17", "-cp", classes, str(source)], check=True)
        place.run(place.java, "-Xint", *options, "-cp", f"{folder}:{classes}", "Starter", place.python)


def _scratch() -> Path:
    folder = BUILD / "matrix/nodes"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
