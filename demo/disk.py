"""The demo's second part: a disk fills, and the broker slows the producers, stops them, and finally releases them.

The broker has two log directories, each on a volume of its own, and one volume fills. The demo sets its limits live,
slightly above the bytes used, so that the part takes a minute. An exempt service fills the disk. The users blue and
orange also write to this disk, and the limits slow them. With ``factor.scope=topics`` the user green, who writes to the
other disk, isn't slowed. Kafka's quota window has two samples here, so that producers are slowed evenly. With Kafka's
default of eleven each producer would send the window's bytes in one second and nothing for ten seconds.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console

from demo.quotas import MEGA, mega
from demo.watch import Watch
from harness.clients.producer import ProducerLoad
from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config, create_topic, delete_topics
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, JAR, PREFIX, STATES, plugin_properties
from harness.system.filesystem import own_file_system
from harness.system.waiting import eventually
from quotahost.broker.disks.file_stores import read_disks
from quotahost.cli.lab import world as lab
from quotahost.cli.lab.drawing import draw_run
from quotahost.model.volumes import ByteLimits

QUOTA: Final = 2 * MEGA  # bytes/s of each user
SETTINGS: Final = {
    "static.produce": str(QUOTA),
    "static.scope": "client",
    "static.excluded.principal.name.list": "User:service",
    "fence.authorizer": "none",
    "factor.source": "local",
    "factor.scope": "topics",
}
WINDOW: Final = 2.0  # seconds: Kafka's window here
# With a short initial delay a broker that has just started also deletes a topic's files immediately.
QUICK_DELETION: Final = {"log.segment.delete.delay.ms": "200", "log.initial.task.delay.ms": "100"}
PROPERTIES: Final = FENCE | QUICK_DELETION | {"quota.window.num": "2"}
SOFT: Final = 80 * MEGA  # bytes above what is used when this part begins
HARD: Final = 240 * MEGA
USERS: Final = ("blue", "orange")
ELSEWHERE: Final = "green"
SERVICE: Final = 12 * MEGA  # bytes/s of the exempt service, which writes on at any factor
PAUSE_TIME: Final = 5.0  # seconds to watch the pause before space is freed
OPEN_TIME: Final = 6.0  # seconds to watch the producers afterwards


@contextmanager
def broker(directory: Path) -> Iterator[tuple[KafkaNode, bool]]:
    """A running broker; also yields whether its log directories are two volumes, which needs the right to mount."""
    users = {name: name for name in (*USERS, ELSEWHERE, "service")}
    properties = plugin_properties(SETTINGS) | PROPERTIES
    node = KafkaNode(directory, classpath=[JAR], properties=properties, users=users, log_dirs=2)
    with ExitStack() as stack:
        mounted = [stack.enter_context(own_file_system(volume)) for volume in node.data_dirs]
        yield stack.enter_context(node), all(mounted)


def topic_on(node: KafkaNode, directory: Path, name: str) -> str:
    """Creates topics until one lies in that log directory; Kafka chooses the directory with the fewest partitions."""
    for number in range(10):
        topic = f"{name}-{number}"
        create_topic(node, topic)
        if eventually(partial(_directory_of, node, topic)) == directory:
            return topic
    raise RuntimeError(f"Kafka put no topic into {directory}")


def _directory_of(node: KafkaNode, topic: str) -> Path | None:
    return next((each for each in node.data_dirs if (each / f"{topic}-0").exists()), None)


def consumed(node: KafkaNode) -> int:
    """Bytes used of the volume of the broker's first log directory."""
    return read_disks("1", [str(node.data_dirs[0])]).volumes[0].consumed


@dataclass(frozen=True)
class Sample:
    """The broker at one moment."""

    at: float  # seconds since the start
    consumed: int  # bytes used of the volume that fills
    factor: float  # the factor in force
    state: str  # OPEN, THROTTLE or PAUSE
    rates: dict[str, float]  # bytes/s over Kafka's last window, 2 s, by user
    totals: dict[str, int]  # bytes delivered so far, by user
    rejections: float  # how many requests the fence has turned back so far


def _sample(node: KafkaNode, loads: dict[str, ProducerLoad], at: float) -> Sample:
    table = Jmx(node).query("quotahost:type=QuotaTable")["quotahost:type=QuotaTable"]
    rejections = float(Jmx(node).get("quotahost:type=Fence", "Rejections"))
    rates = {user: load.meter.rate_over(WINDOW) for user, load in loads.items()}
    totals = {user: load.meter.bytes for user, load in loads.items()}
    return Sample(at, consumed(node), table["Factor"], STATES[int(table["State"])], rates, totals, rejections)


def _line(sample: Sample) -> str:
    rates = ", ".join(f"{user} {mega(rate)}" for user, rate in sample.rates.items())
    used = f"{sample.consumed / 1e6:,.0f} MB used, factor {sample.factor:.2f} ({sample.state})"
    return f"{used}, {sample.rejections:,.0f} requests turned back, producers: {rates}"


@dataclass
class Recording:
    """All samples, the limits in bytes, and when each act began (seconds since the start; None if it didn't begin).

    ``two_volumes`` is False if this machine can't mount file systems. Then green's disk fills, too.
    """

    soft: int
    hard: int
    two_volumes: bool
    samples: list[Sample]
    paused_at: float | None = None
    freed_at: float | None = None
    open_at: float | None = None

    def appended_while_paused(self) -> int:
        """Bytes of blue and orange delivered from 0.5 s after the pause began until space was freed; -1 if no pause."""
        if self.paused_at is None or self.freed_at is None:
            return -1
        paused = [s for s in self.samples if self.paused_at + 0.5 <= s.at <= self.freed_at]
        return sum(paused[-1].totals[user] - paused[0].totals[user] for user in USERS) if paused else 0

    def share_elsewhere(self) -> float:
        """Green's rate while others were slowed or stopped, as a share of its rate before; 0 if nobody was slowed."""
        slowed = [sample for sample in self.samples if sample.state != "OPEN"]
        if not slowed or slowed[0].at <= 0:
            return 0.0
        first, last = slowed[0], slowed[-1]
        before = max(1, first.totals[ELSEWHERE]) / first.at
        return (last.totals[ELSEWHERE] - first.totals[ELSEWHERE]) / max(0.1, last.at - first.at) / before


def play(directory: Path, console: Console) -> Recording:
    """Plays all acts on a broker of its own, and prints what happens."""
    console.print("[bold]Now a disk: its soft and hard limits are set live, 80 and 240 MB above what is used")
    console.print("another broker starts, with two log directories, and quota.window.num=2 for even rates ...")
    with broker(directory) as (node, two_volumes), ExitStack() as stack:
        if not two_volumes:
            console.print("this machine can't mount a file system, so green writes to the disk that fills")
        full, other = node.data_dirs
        written, filling = topic_on(node, full, "written"), topic_on(node, full, "filling")
        elsewhere = topic_on(node, other, "elsewhere")
        used = consumed(node)
        limits = {"soft": used + SOFT, "hard": used + HARD}
        alter_broker_config(node, {f"{PREFIX}static.storage.{side}": str(level) for side, level in limits.items()})
        # Producers just below their quota send evenly, so the picture shows the effect of the factor.
        topics = dict.fromkeys(USERS, written) | {ELSEWHERE: elsewhere}
        loads = {u: ProducerLoad(node.client_config(u, "app"), topic, rate=0.95 * QUOTA) for u, topic in topics.items()}
        loads["service"] = ProducerLoad(node.client_config("service", "filler"), filling, rate=SERVICE)
        for load in loads.values():
            stack.enter_context(load)
        watch = Watch(console, partial(_sample, node, loads), _line)
        recording = Recording(limits["soft"], limits["hard"], two_volumes, watch.samples)
        soft, hard = (f"{level / MEGA:,.0f} MB" for level in limits.values())
        apart = f", nor {ELSEWHERE}, which writes to another disk" if two_volumes else ""
        caption = f"the disk fills: above its soft limit of {soft} producers are slowed, not the exempt service{apart}"
        if watch.until(caption, lambda sample: sample.state == "PAUSE") is not None:
            recording.paused_at = watch.samples[-1].at
        loads["service"].stop()
        caption = f"the disk is at its hard limit of {hard}: the fence turns producers back, the demo ends the service"
        watch.during(caption, PAUSE_TIME)
        delete_topics(node, filling)
        recording.freed_at = watch.samples[-1].at
        caption = "the service's topic is deleted: space comes back"
        if watch.until(caption, lambda sample: sample.state == "OPEN") is not None:
            recording.open_at = watch.samples[-1].at
        watch.during("the producers go on as before", OPEN_TIME)
    return recording


def findings(recording: Recording) -> list[tuple[str, bool]]:
    """Sentences about what the recording shows, each with whether it is as it should be."""
    paused, freed, opened = recording.paused_at, recording.freed_at, recording.open_at
    throttled = any(sample.state == "THROTTLE" for sample in recording.samples)
    findings = [("above the soft limit, producers were slowed", throttled)]
    findings.append(("at the hard limit, they were stopped", paused is not None))
    appended = recording.appended_while_paused()
    findings.append((f"while they were stopped, {max(0, appended):,} of their bytes were appended", appended == 0))
    if freed is not None and opened is not None:
        after = (sample for sample in recording.samples if sample.at >= opened)
        back = next((sample.at for sample in after if any(sample.rates[user] for user in USERS)), None)
        findings.append((f"{opened - freed:.1f} s after the topic was deleted, the state was OPEN again", True))
        findings.append((f"{(back or 0) - opened:.1f} s later, they produced again", back is not None))
    else:
        findings.append(("the state was not OPEN again", False))
    if recording.two_volumes:
        share = recording.share_elsewhere()
        findings.append(
            (f"{ELSEWHERE}, which writes to another disk, got {share:.0%} of its rate meanwhile", share > 0.9)
        )
    return findings


def draw(recording: Recording, file: Path) -> None:
    """Draws the picture into a PNG file, as ``quotahost simulate disk --plot`` does; the service is left out."""
    file.parent.mkdir(parents=True, exist_ok=True)
    users = (*USERS, ELSEWHERE)
    samples = [
        lab.Sample(round(1000 * one.at), one.consumed, one.factor, tuple(one.totals[user] for user in users))
        for one in recording.samples
    ]
    title = f"A disk that fills; {ELSEWHERE} writes to another one"
    draw_run(lab.Recording(users, ByteLimits(recording.soft, recording.hard), samples), title, file)
