"""``quotahost explain --volume``: shows what fills a volume of a broker, how fast, and what would make room.

1. The broker says what it knows (:func:`ask_volumes`): its log directories, its volumes' limits, who writes.
2. Two looks at the log directories, some seconds apart, say what takes room and grows
   (``quotahost.broker.disks.topics``). They are made in this process, as the broker's user, so a slow disk holds up
   no thread of the broker.
3. The broker says how long the largest topics are kept, and ``retention`` works out what less of it would free.

``quotahost top`` shows the same of a volume that it opens, on this machine or, without the third part, by a record.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from quotahost.broker.disks.file_stores import read_disks
from quotahost.broker.disks.topics import measure
from quotahost.broker.host.broker_status import gauges, marks, numbers_of, usage
from quotahost.broker.host.dump import Ask, of_this_version, state_of
from quotahost.cli.console import console, one_line, show_facts, shown, table
from quotahost.cli.explain.broker_socket import BrokerSocket, Unanswered, connect
from quotahost.cli.explain.retention import Cut, Retention, cut
from quotahost.model import Client, QuotaType, State, Volume, VolumeUse
from quotahost.model.use import MeasuredVolume
from quotahost.text import printable
from quotahost.units.show import show_bytes, show_rate, show_span, show_time

VOLUMES: Final = ("volume", "capacity", "consumed", "soft", "hard", "factor")
_TOPICS: Final = ("topic", "size", "of used", "written")
_CLIENTS: Final = ("client", "produces", "writes to")
_CUTS: Final = ("topic", "kept", "half of it frees", "a quarter of it frees")
NOT_BY_TOPIC: Final = (
    "Kafka doesn't tell which client writes to which topic: of the clients with a quota of their own these produce "
    "most on this broker."
)
LATELY: Final = (
    "A topic is the last affected one that the client asked to write to, on whatever volume; of the other clients with "
    "a quota of their own these produce most on this broker."
)
_CLOSED: Final = (
    "counted are segments that Kafka has closed, by the timestamps of their newest records; the one that it appends to "
    "stays. The same is freed on each broker that has a replica."
)
_MOST_CLIENTS: Final = 10  # of the busiest, and of those that are marked
_MOST_CUTS: Final = 5  # topics of which the segments are looked at

_Facts = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class BrokerVolumes:
    """What a broker knows of its volumes, and of who writes.

    Attributes:
        pid: the process id of the broker, "" if it is on another machine.
        node: its node id, "" if it isn't known.
        state: the state in force on it.
        factor: the factor in force.
        cause: why that is below 1, "" if it isn't.
        directories: its log directories.
        numbers: by volume, the attributes of its MBeans Volume and VolumeLimits; without a monitor of disks none.
        clients: those that produce most, with their bytes/s; only clients that have a quota of their own.
        marks: the clients that lately asked to write to an affected topic, with that topic (``factor.scope=topics``).
    """

    pid: str
    node: str
    state: State
    factor: float
    cause: str
    directories: Sequence[str]
    numbers: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    clients: Sequence[tuple[Client, float]] = ()
    marks: Sequence[tuple[Client, str]] = ()


# ---- asking and measuring --------------------------------------------------------------------------------------


def explain_volume(name: str, which: str, seconds: float, screen: Console | None = None) -> int:
    """Explain the volume of this name, or with one of its log directories, or list all if it is ""; the exit code.

    Raises:
        Unanswered: no broker (``broker_socket.named``) answered, or it has no such volume.
    """
    screen = screen or console()
    with connect(which) as asked, asked.understood():
        broker = ask_volumes(asked.ask)
        disks = read_disks(broker.node, broker.directories)
        volumes = {volume.name: volume for volume in disks.volumes}
        if not name:
            _list(screen, broker, disks.volumes, disks.offline)
            return 0
        volume = dict(disks.places).get(name, name)
        if volume not in volumes:
            known = ", ".join(map(printable, volumes)) or "none that can be read"
            lost = "".join(f"; {text}" for text in disks.offline)
            raise Unanswered(f"broker {broker.node} has no volume {printable(name)}", f"it has: {known}{lost}")
        directories = [directory for directory, place in disks.places if place == volume]
        try:
            measured, look = measure(volume, broker.node, directories, seconds)
        except OSError as error:
            raise Unanswered(f"volume {printable(volume)} can't be read", str(error)) from None
        show_volume(screen, broker, measured)
        topics = [topic.name for topic in sorted(measured.topics, key=lambda topic: -topic.used)]
        if topics := [topic for topic in topics if "(" not in topic][:_MOST_CUTS]:
            kept, problem = _retention(asked, topics)
            note = _CLOSED + (f"\n  Retention is not known: {one_line(problem)}" if problem else "")
            cuts = [cut(topic, kept[topic], look) for topic in topics]
            _titled(
                screen, "What a shorter retention would free", _CUTS, map(cut_row, cuts), note + stalled_uploads(cuts)
            )
    return 0


def volume_names(which: str) -> list[str]:
    """The names of a broker's volumes, in the order in which they are listed.

    Raises:
        Unanswered: no broker answered.
    """
    with connect(which) as asked, asked.understood():
        broker = ask_volumes(asked.ask)
        return [volume.name for volume in read_disks(broker.node, broker.directories).volumes]


def ask_volumes(ask: Ask) -> BrokerVolumes:
    """Ask a broker.

    Raises:
        ValueError: its answers are those of another version.
    """
    with of_this_version():
        state = state_of(ask("state"))
        busiest = usage(ask, 2 * _MOST_CLIENTS)  # fetches are among them
        producers = [
            (Client(client.principal, client.client_id), client.rate)
            for client in busiest
            if client.quota_type is QuotaType.PRODUCE
        ]
        return BrokerVolumes(
            str(state.pid), state.node, state.state, state.factor, state.cause, state.log_dirs,
            numbers_of(gauges(ask)), producers[:_MOST_CLIENTS], marks(ask, _MOST_CLIENTS),
        )  # fmt: skip


def _retention(asked: BrokerSocket, topics: Sequence[str]) -> tuple[dict[str, Retention], str]:
    """How long each topic is kept, and why that isn't known; "" if it is."""
    try:
        properties = retention_of(asked.ask("retention", ",".join(topics)))
        return {topic: Retention.of(properties.get(topic, {"retention.ms": "-1"})) for topic in topics}, ""
    except (Unanswered, ValueError, TypeError) as error:
        # The Python host answers this one, and it may hang. Then the ages of the topics stand in for their retention.
        return dict.fromkeys(topics, Retention()), str(error).splitlines()[0]


def retention_of(answer: Any) -> dict[str, dict[str, str]]:
    """By topic what its properties of retention are, from the answer to the question ``retention``."""
    properties: dict[str, dict[str, str]] = defaultdict(dict)
    for topic, name, value in answer:
        properties[topic][name] = value
    return dict(properties)


# ---- showing ---------------------------------------------------------------------------------------------------


def _list(screen: Console, broker: BrokerVolumes, volumes: Sequence[Volume], offline: Sequence[str]) -> None:
    limits = [map(broker.numbers.get(volume.name, {}).get, ("Soft", "Hard", "Factor")) for volume in volumes]
    uses = [
        VolumeUse(volume.name, volume.capacity, volume.consumed, *of)
        for volume, of in zip(volumes, limits, strict=True)
    ]
    screen.print(table(VOLUMES, map(volume_row, uses)))
    for lost in offline:
        screen.print(Text(f"unknown: {one_line(lost)}"), soft_wrap=True)


def show_volume(screen: Console, broker: BrokerVolumes, measured: MeasuredVolume) -> None:
    """Print what a volume is, what fills it, and who writes."""
    show_facts(screen, volume_facts(broker, measured))
    _titled(screen, "What fills it", _TOPICS, topic_rows(measured))
    about = LATELY if broker.marks else NOT_BY_TOPIC
    _titled(screen, "Who writes", _CLIENTS, client_rows(broker), about)


def _titled(screen: Console, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], note: str = "") -> None:
    screen.print(Text(f"\n{title}", style="bold"))
    screen.print(table(columns, rows))
    if note:
        screen.print(Text(f"  {shown(note)}", style="dim"), soft_wrap=True)


def volume_row(volume: VolumeUse) -> Sequence[str]:
    """How full a volume is, in the columns VOLUMES."""
    sizes = [show_bytes(size) for size in (volume.capacity, volume.consumed)]
    limits = ["" if limit is None else show_bytes(limit) for limit in (volume.soft, volume.hard)]
    return [printable(volume.name), *sizes, *limits, "" if volume.factor is None else f"{volume.factor:.4g}"]


def volume_facts(broker: BrokerVolumes, measured: MeasuredVolume) -> _Facts:
    """The facts about the volume, as pairs of label and text."""
    volume, numbers = measured.volume, broker.numbers.get(measured.volume.name, {})
    place = ", ".join(map(printable, measured.directories))
    node = printable(broker.node) if broker.node else "of unknown id"
    return [
        ("broker", f"{node}{f' (pid {printable(broker.pid)})' if broker.pid else ''}"),
        ("volume", f"{printable(volume.name)}, with {place}"),
        ("capacity", show_bytes(volume.capacity)),
        ("consumed", f"{show_bytes(volume.consumed)} ({_share(volume.consumed, volume.capacity)})"),
        *_limits(measured, numbers),
        ("state", _state(broker, numbers)),
        ("growth", _growth(measured, numbers)),
        *[("unread", printable(text)) for text in measured.unread],
    ]


def _limits(measured: MeasuredVolume, numbers: Mapping[str, float]) -> _Facts:
    if "Hard" not in numbers:
        why = "its policy tells none" if numbers else "this broker watches no volumes (static.storage.*, factor.source)"
        return [("limits", f"unknown: {why}")]
    consumed = measured.volume.consumed
    return [
        (label, f"{show_bytes(numbers[name])}, {_distance(numbers[name] - consumed)}")
        for label, name in (("soft", "Soft"), ("hard", "Hard"))
    ]


def _distance(left: float) -> str:
    return f"{show_bytes(left)} left" if left > 0 else f"breached by {show_bytes(-left)}"


def _state(broker: BrokerVolumes, numbers: Mapping[str, float]) -> str:
    of_volume = f"this volume's factor is {numbers['Factor']:.4g}; " if "Factor" in numbers else ""
    cause = f" ({printable(broker.cause)})" if broker.cause and broker.factor < 1 else ""
    return f"{of_volume}{broker.state} with the factor {broker.factor:.4g} is in force{cause}"


def _growth(measured: MeasuredVolume, numbers: Mapping[str, float]) -> str:
    text = f"{show_rate(measured.growth)} over {measured.seconds:.1f} s"
    if measured.growth <= 0:
        return text
    ends = [("its hard limit", measured.until(numbers.get("Hard"))), ("full", measured.until(measured.volume.capacity))]
    # A limit that is reached needs no time.
    times = [(name, show_time(seconds)) for name, seconds in ends if seconds]
    known = [f"{name} {time if time.startswith('in ') else f'in {time}'}" for name, time in times]
    return f"{text}; at this growth {', '.join(known)}" if known else text


def topic_rows(measured: MeasuredVolume) -> Iterable[Sequence[str]]:
    """The topics that take most or grow most, and a row for the rest."""
    consumed = measured.volume.consumed
    for topic in measured.topics:
        yield printable(topic.name), show_bytes(topic.used), _share(topic.used, consumed), show_rate(topic.written)
    other = consumed - sum(topic.used for topic in measured.topics)
    if other > 0:
        yield "(not Kafka's, or the file system's own)", show_bytes(other), _share(other, consumed), ""


def client_rows(broker: BrokerVolumes) -> Iterable[Sequence[str]]:
    """The busiest producers, and those that are marked."""
    topics, rates = dict(broker.marks), dict(broker.clients)
    for client in dict.fromkeys([*rates, *topics]):
        rate = f"{show_bytes(rates[client])}/s" if client in rates else ""
        name = f"user {printable(client.principal)}, client-id {printable(client.client_id)}"
        yield name, rate, printable(topics[client]) if client in topics else ""


def stalled_uploads(cuts: Iterable[Cut]) -> str:
    """A line for each tiered topic whose closed segments outlive their retention; such segments a cut doesn't free."""
    return "".join(
        f"\n  {printable(cut.topic)}: {show_bytes(cut.overdue)} are past the local retention and still here. Tiered "
        "storage deletes nothing before it is uploaded, so uploads are late, and a cut frees less than is shown."
        for cut in cuts
        if cut.overdue
    )


def cut_row(cut: Cut) -> Sequence[str]:
    """What shorter retentions of one topic would free."""
    if cut.kept.compacted:
        return printable(cut.topic), "compacted: no retention applies", "", ""
    if cut.base is None:
        return printable(cut.topic), _kept(cut), show_bytes(0), show_bytes(0)
    parts = [show_bytes(cut.base / share) if cut.by_size else _span(cut.base / share) for share in (2, 4)]
    freed = [f"{show_bytes(freed)} ({part})" for freed, part in zip(cut.freed, parts, strict=True)]
    return printable(cut.topic), _kept(cut), *freed


def _kept(cut: Cut) -> str:
    if cut.by_size:
        return f"{show_bytes(cut.base or 0)} a partition"
    if cut.kept == Retention():
        return "for ever" + (f"; its oldest closed segment is {_span(cut.base)} old" if cut.base else "")
    return _span(cut.kept.seconds or 0)


def _span(seconds: float) -> str:
    return show_span(timedelta(seconds=seconds))


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else ""
