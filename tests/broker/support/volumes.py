"""Small volumes that a test fills, samples of their use, and the volumes that a broker publishes.

Other programs may write to a broker's disk. So a test that mounts no volume computes what it expects from the latest
snapshot, not from an earlier one.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from harness.java.jmx import Jmx
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, STATES
from harness.system.background import Background
from harness.system.filesystem import own_file_system
from harness.system.waiting import eventually
from quotahost.model import Volume
from quotahost.records import snapshot as snapshot_records
from tests.broker.support.node import callback_node
from tests.broker.support.numbers import records
from tests.skips import COULD_NOT_RUN

SNAPSHOTS: Final = "__quotahost_snapshots"
MEGA: Final = 1_000_000
#: Broker properties with which space is free within a second after a deletion or the end of retention.
QUICK_DELETION: Final = {
    "log.segment.delete.delay.ms": "100",
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "500",
}
#: Kafka's quota window has two samples, so that a producer's bursts are small compared with the volume.
SMALL_BURSTS: Final = {"quota.window.num": "2"}
WINDOW: Final = 2.0  # seconds of this window
_NO_VOLUME: Final = (
    f"{COULD_NOT_RUN}this user can't mount a file system here, and a test that fills a volume needs a small one. "
    "Run the test as root, in a container that may mount (SYS_ADMIN), or where user namespaces are allowed"
)


@contextmanager
def small_volume(folder: Path, size: int) -> Iterator[Path]:
    """Mounts a file system of so many bytes at the folder; if that isn't allowed, skips the test with the reason."""
    with own_file_system(folder, str(size)) as mounted:
        if not mounted:
            pytest.skip(_NO_VOLUME)
        yield folder


@contextmanager
def node_with_two_volumes(directory: Path, settings: dict[str, str], size: int, **more: Any) -> Iterator[KafkaNode]:
    """Runs a broker with a fence and two log directories, each of which is a volume of so many bytes."""
    properties = SMALL_BURSTS | QUICK_DELETION | FENCE
    with ExitStack() as stack:
        node = callback_node(directory, settings, properties=properties, log_dirs=2, **more)
        for volume in node.data_dirs:
            stack.enter_context(small_volume(volume, size))
        yield stack.enter_context(node)


def used(directory: Path) -> int:
    """Bytes used of the directory's volume, as the operating system counts them."""
    return shutil.disk_usage(directory).used


class Sample(NamedTuple):
    """A broker's state and factor, and the bytes used by volume, at one moment (monotonic s)."""

    moment: float
    state: str
    factor: float
    used: tuple[int, ...]


class VolumeWatch(Background):
    """Takes samples of a broker and of some volumes for the time of a ``with`` block."""

    def __init__(self, node: KafkaNode, directories: Sequence[Path]) -> None:
        """Takes a directory of each volume."""
        super().__init__()
        self._table = Jmx(node)
        self._directories = directories
        self.samples: list[Sample] = []

    def since(self, moment: float) -> list[Sample]:
        """The samples from that moment on."""
        return [sample for sample in self.samples if sample.moment >= moment]

    def most_used(self, volume: int) -> int:
        """The largest number of bytes used of a volume, which is given by its place in the list of directories."""
        return max(sample.used[volume] for sample in self.samples)

    def _run(self) -> None:
        while not self._stopping.wait(0.1):
            self.samples.append(self._sample())

    def _sample(self) -> Sample:
        (table,) = self._table.query("quotahost:type=QuotaTable").values()
        state, factor = STATES[int(table["State"])], float(table["Factor"])
        return Sample(time.monotonic(), state, factor, tuple(map(used, self._directories)))


def offline_directories(node: KafkaNode) -> int:
    """The number of log directories that Kafka itself has taken offline."""
    return int(Jmx(node).get("kafka.log:type=LogManager,name=OfflineLogDirectoryCount", "Value"))


def never_ran_out_of_space(node: KafkaNode) -> bool:
    """Whether no write of Kafka failed for lack of space, and no log directory went offline."""
    return "No space left" not in node.log_text() and offline_directories(node) == 0


def directory_of(topic: str, directories: Sequence[Path]) -> Path:
    """The log directory in which a topic's first partition lies; waits until there is one."""
    return eventually(lambda: next((each for each in directories if (each / f"{topic}-0").exists()), None))


def topic_on_each(directories: Sequence[Path], create: Callable[[str], None]) -> list[str]:
    """Creates topics until each log directory has the first partition of one; returns one for each directory.

    Kafka gives a new partition to the log directory that has the fewest.
    """
    found: dict[Path, str] = {}
    for number in range(4 * len(directories)):
        topic = f"volume-{number}"
        create(topic)
        found[directory_of(topic, directories)] = topic
        if len(found) == len(directories):
            return [found[each] for each in directories]
    raise AssertionError(f"Kafka placed topics only in {sorted(found)}")


def published(node: KafkaNode) -> Volume:
    """The first volume of the broker's latest snapshot; waits until the broker has published one."""
    key = str(node.node_id).encode()
    return eventually(lambda: snapshot_records.decode(key, dict(records(node, SNAPSHOTS))[key]).volumes[0])


def ramp(consumed: int, soft: int, hard: int) -> float:
    """The factor that proposal 035 gives to a volume with so many bytes used: 1 at soft, 0 at hard."""
    return min(1.0, max(0.0, (hard - consumed) / (hard - soft)))
