"""Asks a broker about a volume, measures its log directories twice, and prints both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from quotahost.broker.disks.file_stores import read_disks
from quotahost.broker.disks.measured import measure
from quotahost.cli.console import console, shown, table
from quotahost.cli.explain.query import Asked, Unanswered
from quotahost.cli.explain.volume import facts, retention, wording
from quotahost.cli.explain.volume.cuts import Cut, cut
from quotahost.cli.explain.volume.facts import BrokerVolumes
from quotahost.model import Volume, VolumeUse
from quotahost.model.volume_use import MeasuredVolume
from quotahost.text import printable

_CUTS = 5  # topics of which the segments are looked at


def volume(name: str, which: str, seconds: float, screen: Console | None = None) -> int:
    """Explain the volume of this name, or with one of its log directories, or list all if it is ""; the exit code.

    Raises:
        Unanswered: no broker answered, or it has no such volume.
    """
    with Asked(which) as asked:
        return _volume(name, asked, seconds, screen or console())


def _volume(name: str, asked: Asked, seconds: float, screen: Console) -> int:
    broker = _ask(asked)
    disks = read_disks(broker.node, broker.directories)
    volumes = {each.name: each for each in disks.volumes}
    if not name:
        return _list(screen, broker, list(volumes.values()), disks.offline)
    found = dict(disks.places).get(name, name)
    if found not in volumes:
        known = ", ".join(map(printable, volumes)) or "none that can be read"
        lost = "".join(f"; {each}" for each in disks.offline)
        raise Unanswered(f"broker {broker.node} has no volume {printable(name)}", f"it has: {known}{lost}")
    directories = [directory for directory, of in disks.places if of == found]
    _show(screen, broker, *_measure(broker, found, directories, seconds), asked)
    return 0


def volume_names(which: str) -> list[str]:
    """The names of a broker's volumes, in the order in which they are listed.

    Raises:
        Unanswered: no broker answered.
    """
    with Asked(which) as asked:
        broker = _ask(asked)
    return [each.name for each in read_disks(broker.node, broker.directories).volumes]


def _ask(asked: Asked) -> BrokerVolumes:
    try:
        return facts.ask_volumes(asked.ask)
    except ValueError as problem:
        raise asked.older(problem) from None


def _list(screen: Console, broker: BrokerVolumes, volumes: Sequence[Volume], offline: Sequence[str]) -> int:
    rows = [wording.volume_row(_use(each, broker.numbers.get(each.name, {}))) for each in volumes]
    screen.print(table(wording.VOLUMES, rows))
    for lost in offline:
        screen.print(Text(f"unknown: {shown(lost)}"), soft_wrap=True)
    return 0


def _use(volume: Volume, numbers: Mapping[str, float]) -> VolumeUse:
    limits = map(numbers.get, ("Soft", "Hard", "Factor"))
    return VolumeUse(volume.name, volume.capacity, volume.consumed, *limits)


def _measure(
    broker: BrokerVolumes, name: str, directories: Sequence[str], seconds: float
) -> tuple[MeasuredVolume, Callable[[str, retention.Retention], Cut]]:
    """The volume after two looks, and what works out the cuts of a topic."""
    try:
        found, seen = measure(name, broker.node, directories, seconds)
    except OSError as error:
        raise Unanswered(f"volume {printable(name)} can't be read", str(error)) from None
    return found, lambda topic, kept: cut(topic, kept, seen)


def _show(
    screen: Console,
    broker: BrokerVolumes,
    found: MeasuredVolume,
    cuts: Callable[[str, retention.Retention], Cut],
    asked: Asked,
) -> None:
    show(screen, broker, found)
    topics = [each.name for each in sorted(found.topics, key=lambda one: -one.used) if _is_topic(each.name)][:_CUTS]
    if not topics:
        return
    kept: Mapping[str, Mapping[str, str]] = {}
    problem = ""
    try:
        kept = facts.retention_of(asked.ask("retention", ",".join(topics)))
    except (Unanswered, ValueError, TypeError) as error:
        problem = str(error).splitlines()[0]  # the Python host answers this one, and it may hang
    # Without an answer the ages of the topics stand in for their retention.
    rows = [wording.cut_row(cuts(topic, retention.of(kept.get(topic, {"retention.ms": "-1"})))) for topic in topics]
    note = wording.CLOSED + (f"\n  Retention is not known: {problem}" if problem else "")
    _titled(screen, "What a shorter retention would free", wording.CUTS, rows, note)


def show(screen: Console, broker: BrokerVolumes, found: MeasuredVolume) -> None:
    """Print what a volume is, what fills it, and who writes."""
    for label, value in wording.facts(broker, found):
        screen.print(Text.assemble((f"  {label:<10}", "dim"), shown(value)), soft_wrap=True)
    _titled(screen, "What fills it", wording.TOPICS, wording.topic_rows(found))
    _titled(screen, "Who writes", wording.CLIENTS, wording.client_rows(broker), wording.about_clients(broker))


def _titled(screen: Console, title: str, columns: Sequence[str], rows: object, note: str = "") -> None:
    screen.print(Text(f"\n{title}", style="bold"))
    screen.print(table(columns, rows))  # type: ignore[arg-type]
    if note:
        screen.print(Text(f"  {shown(note)}", style="dim"), soft_wrap=True)


def _is_topic(name: str) -> bool:
    return "(" not in name
