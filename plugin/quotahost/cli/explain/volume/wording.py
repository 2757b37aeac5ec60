"""A volume in an operator's words: labelled facts, and the rows of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final

from quotahost.cli.explain.volume.cuts import Cut
from quotahost.cli.explain.volume.facts import BrokerVolumes
from quotahost.cli.explain.volume.retention import Retention
from quotahost.model import VolumeUse
from quotahost.model.volume_use import MeasuredVolume
from quotahost.text import printable
from quotahost.units.show import show_bytes, show_rate, show_span, show_time

VOLUMES: Final = ("volume", "capacity", "consumed", "soft", "hard", "factor")
TOPICS: Final = ("topic", "size", "of used", "written")
CLIENTS: Final = ("client", "produces", "writes to")
CUTS: Final = ("topic", "kept", "half of it frees", "a quarter of it frees")
NOT_BY_TOPIC: Final = (
    "Kafka doesn't tell which client writes to which topic: of the clients with a quota of their own these produce "
    "most on this broker."
)
LATELY: Final = (
    "A topic is the last affected one that the client asked to write to, on whatever volume; of the other clients with "
    "a quota of their own these produce most on this broker."
)
CLOSED: Final = (
    "counted are segments that Kafka has closed, by the timestamps of their newest records; the one that it appends to "
    "stays. The same is freed on each broker that has a replica."
)

_Facts = list[tuple[str, str]]


def volume_row(volume: VolumeUse) -> Sequence[str]:
    """How full a volume is, in the columns VOLUMES."""
    sizes = [show_bytes(each) for each in (volume.capacity, volume.consumed)]
    limits = ["" if each is None else show_bytes(each) for each in (volume.soft, volume.hard)]
    return [volume.name, *sizes, *limits, "" if volume.factor is None else f"{volume.factor:.4g}"]


def facts(broker: BrokerVolumes, found: MeasuredVolume) -> _Facts:
    """The facts about the volume, as pairs of label and text."""
    volume, numbers = found.volume, broker.numbers.get(found.volume.name, {})
    place = ", ".join(map(printable, found.directories))
    return [
        ("broker", f"{broker.node or 'of unknown id'}{f' (pid {broker.pid})' if broker.pid else ''}"),
        ("volume", f"{printable(volume.name)}, with {place}"),
        ("capacity", show_bytes(volume.capacity)),
        ("consumed", f"{show_bytes(volume.consumed)} ({_share(volume.consumed, volume.capacity)})"),
        *_limits(found, numbers),
        ("state", _state(broker, numbers)),
        ("growth", _growth(found, numbers)),
        *[("unread", printable(each)) for each in found.unread],
    ]


def _limits(found: MeasuredVolume, numbers: Mapping[str, float]) -> _Facts:
    if "Hard" not in numbers:
        why = "its policy tells none" if numbers else "this broker watches no volumes (static.storage.*, factor.source)"
        return [("limits", f"unknown: {why}")]
    consumed = found.volume.consumed
    return [
        (label, f"{show_bytes(numbers[name])}, {_distance(numbers[name] - consumed)}")
        for label, name in (("soft", "Soft"), ("hard", "Hard"))
    ]


def _distance(left: float) -> str:
    return f"{show_bytes(left)} left" if left > 0 else f"breached by {show_bytes(-left)}"


def _state(broker: BrokerVolumes, numbers: Mapping[str, float]) -> str:
    own = f"this volume's factor is {numbers['Factor']:.4g}; " if "Factor" in numbers else ""
    cause = f" ({printable(broker.cause)})" if broker.cause and broker.factor < 1 else ""
    return f"{own}{broker.state} with the factor {broker.factor:.4g} is in force{cause}"


def _growth(found: MeasuredVolume, numbers: Mapping[str, float]) -> str:
    text = f"{show_rate(found.growth)} over {found.seconds:.1f} s"
    if found.growth <= 0:
        return text
    ends = [("its hard limit", found.until(numbers.get("Hard"))), ("full", found.until(found.volume.capacity))]
    # A limit that is reached needs no time.
    known = [f"{name} {_in(seconds)}" for name, seconds in ends if seconds]
    return f"{text}; at this growth {', '.join(known)}" if known else text


def _in(seconds: float) -> str:
    text = show_time(seconds)
    return text if text.startswith("in ") else f"in {text}"


def topic_rows(found: MeasuredVolume) -> Iterable[Sequence[str]]:
    """The topics that take most or grow most, and a row for the rest."""
    consumed = found.volume.consumed
    for each in found.topics:
        yield printable(each.name), show_bytes(each.used), _share(each.used, consumed), show_rate(each.written)
    other = consumed - sum(each.used for each in found.topics)
    if other > 0:
        yield "(not Kafka's, or the file system's own)", show_bytes(other), _share(other, consumed), ""


def client_rows(broker: BrokerVolumes) -> Iterable[Sequence[str]]:
    """The busiest producers, and those that are marked."""
    topics, rates = dict(broker.marks), dict(broker.clients)
    for each in dict.fromkeys([*rates, *topics]):
        rate = f"{show_bytes(rates[each])}/s" if each in rates else ""
        name = f"user {printable(each.principal)}, client-id {printable(each.client_id)}"
        yield name, rate, printable(topics[each]) if each in topics else ""


def about_clients(broker: BrokerVolumes) -> str:
    """What the table of clients can say, and what it can't."""
    return LATELY if broker.marks else NOT_BY_TOPIC


def cut_row(cut: Cut) -> Sequence[str]:
    """What shorter retentions of one topic would free."""
    if cut.kept.compacted:
        return printable(cut.topic), "compacted: no retention applies", "", ""
    if cut.base is None:
        return printable(cut.topic), _kept(cut), show_bytes(0), show_bytes(0)
    parts = (
        [show_bytes(cut.base / 2), show_bytes(cut.base / 4)]
        if cut.by_size
        else [_span(cut.base / 2), _span(cut.base / 4)]
    )
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
