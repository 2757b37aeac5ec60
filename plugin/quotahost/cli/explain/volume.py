"""``quotahost explain --volume`` shows what fills a volume, how fast, who writes, and what a shorter retention frees.

1. The broker tells its log directories, the limits of its volumes, and the clients that write (:func:`ask_volumes`).
2. This process, as the broker's user, lists the log directories twice, some seconds apart, to find the topics that take
   space and grow (``quotahost.broker.disks.topics``). So a slow disk blocks no thread of the broker.
3. The broker tells the retention of the largest topics, and ``retention`` works out what a shorter one would free.

If no volume is named, the command lists all volumes and budgets. ``quotahost top`` shows the same of a volume that the
user opens: all of it for a broker of this machine, and all except step 3 for a cluster.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from quotahost.api import DiskState
from quotahost.base.errors import Unusable
from quotahost.base.text import printable
from quotahost.broker.disks.file_stores import log_dirs, read_disks
from quotahost.broker.disks.topics import measure
from quotahost.broker.host.broker_status import budgets_of, marks, parse
from quotahost.broker.host.dump import Ask, BrokerState
from quotahost.broker.host.messages import gauges, numbers_of
from quotahost.cli.console import one_line, show_facts, shown, table
from quotahost.cli.explain.broker_socket import connect
from quotahost.cli.explain.retention import SHARES, Cut, Retention, cut
from quotahost.model import Look, QuotaType, VolumeUse
from quotahost.model.use import MeasuredVolume
from quotahost.units.show import show_bytes, show_factor, show_rate, show_seconds, show_share, show_span, show_time

VOLUMES: Final = ("volume", "capacity", "consumed", "soft", "hard", "factor")
_BUDGETS: Final = ("budget", "used", "of", "share", "factor")
_TOPICS: Final = ("topic", "size", "of used", "written")
_CLIENTS: Final = ("client", "produces", "writes to")
_CUTS: Final = ("topic", "kept", "half of it frees", "a quarter of it frees")
_WRITERS: Final = (
    "the clients with their own quota that produce most on this broker, not those of topics that others lead. "
    "Kafka tells no topics: 'writes to' is the last affected topic that the client asked to write to, on any volume."
)
_CLOSED: Final = (
    "only closed segments count, by the timestamps of their latest records; the active segment stays. Each broker that "
    "has a replica frees the same."
)
_MOST_USES: Final = 1_000  # uses that the broker returns; the busiest producers among them are shown
_MOST_CLIENTS: Final = 10  # the number of busiest clients, and of marked clients, at most
_MOST_CUTS: Final = 5  # topics whose segments are listed

# ---- asking and measuring --------------------------------------------------------------------------------------


def explain_volume(name: str, which: str, seconds: float, screen: Console) -> list[str]:
    """Explain the volume that ``name`` or one of its log directories names; list all for "". Return all names."""
    with connect(which) as ask:
        disks, look = ask_volumes(ask)
        volumes = {use.name: use for use in look.volumes if not use.budget}
        if not name:
            screen.print(table(VOLUMES, map(volume_row, volumes.values())))
            for lost in disks.offline:
                screen.print(Text(f"unknown: {one_line(lost)}"), soft_wrap=True)
            show_budgets(screen, look.volumes)
            return list(volumes)
        given = name if name in volumes else str(Path(name))  # a shell completes a folder with a slash
        volume = dict(disks.places).get(given, given)
        if volume not in volumes:
            names = ", ".join(map(printable, volumes)) or "none that can be read"
            remedy = "; ".join([f"it has: {names}", *disks.offline])
            raise Unusable(f"{look.where} has no volume {printable(name)}", remedy)
        try:
            measured, seen = measure(volume, [path for path, place in disks.places if place == volume], seconds)
        except OSError as error:
            raise Unusable(f"volume {printable(volume)} can't be read", str(error)) from None
        show_volume(screen, look, measured)
        topics = [topic.name for topic in sorted(measured.topics, key=lambda topic: -topic.used)]
        if topics := [topic for topic in topics if "(" not in topic][:_MOST_CUTS]:
            kept, problem = _retention(ask, topics)
            note = _CLOSED + (f"\n  Retention is not known: {one_line(problem)}" if problem else "")
            cuts = [cut(topic, kept[topic], seen.partitions[topic]) for topic in topics]
            note += stalled_uploads(cuts)
            _titled(screen, "What a shorter retention would free", _CUTS, map(cut_row, cuts), note)
        return list(volumes)


def ask_volumes(ask: Ask) -> tuple[DiskState, Look]:
    """A broker's disks now, and a look with its volumes' limits and the clients that write."""
    state = BrokerState.of(ask("state"))
    disks = read_disks(state.node, log_dirs(state.properties))
    shown = gauges(ask)
    numbers = numbers_of(shown)  # empty if no plugin watches the volumes
    if watched := numbers_of(shown, "Volume"):  # Kafka may have taken a directory offline that can be read from here
        lost = [f"{at.name}: the broker has lost its log directory" for at in disks.volumes if at.name not in watched]
        disks = replace(disks, offline=(*disks.offline, *lost))
    volumes = [
        VolumeUse(at.name, at.capacity, at.consumed, *map(numbers.get(at.name, {}).get, ("Soft", "Hard", "Factor")))
        for at in disks.volumes
    ]
    return disks, parse(ask("uses", str(_MOST_USES)), [*volumes, *budgets_of(shown)], marks(ask, _MOST_CLIENTS))


def _retention(ask: Ask, topics: Sequence[str]) -> tuple[Mapping[str, Retention], str]:
    """The retention of each topic, and the reason why it isn't known; "" if it is known."""
    try:
        properties: dict[str, dict[str, str]] = {topic: {} for topic in topics}
        for topic, name, value in ask("retention", ",".join(topics)):
            properties.setdefault(topic, {})[name] = value
        return {topic: Retention.of(of_topic) for topic, of_topic in properties.items()}, ""
    except Unusable as error:
        # The Python host answers this question, and may hang. Then the age of each topic stands in for its retention.
        return dict.fromkeys(topics, Retention()), str(error).splitlines()[0]


# ---- showing ---------------------------------------------------------------------------------------------------


def show_volume(screen: Console, look: Look, measured: MeasuredVolume) -> None:
    show_facts(screen, volume_facts(look, measured))
    _titled(screen, "What fills it", _TOPICS, topic_rows(measured))
    _titled(screen, "Who writes", _CLIENTS, client_rows(look), _WRITERS)


def _titled(screen: Console, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], note: str = "") -> None:
    screen.print(Text(f"\n{title}", style="bold"))
    screen.print(table(columns, rows))
    if note:
        screen.print(Text(f"  {shown(note)}", style="dim"), soft_wrap=True)


def volume_row(volume: VolumeUse) -> Sequence[str]:
    sizes = (volume.capacity, volume.consumed, volume.soft, volume.hard)
    shown = ["" if size is None else show_bytes(size) for size in sizes]
    return [printable(volume.name), *shown, "" if volume.factor is None else show_factor(volume.factor)]


def show_budgets(screen: Console, uses: Iterable[VolumeUse]) -> None:
    """Print the budgets of storage among these uses, in the given order; each only once, as all brokers tell them."""
    budgets: dict[str, VolumeUse] = {}
    for use in uses:
        if use.budget:
            budgets.setdefault(use.budget, use)
    if budgets:
        _titled(screen, "Budgets of storage", _BUDGETS, map(_budget_row, budgets.values()))


def _budget_row(use: VolumeUse) -> Sequence[str]:
    sizes = [show_bytes(size) for size in (use.consumed, use.capacity)]
    factor = show_factor(1.0 if use.factor is None else use.factor)
    return [printable(use.budget), *sizes, _share(use.consumed, use.capacity), factor]


def volume_facts(look: Look, measured: MeasuredVolume) -> Iterator[tuple[str, str]]:
    use = next((use for use in look.volumes if use.name == measured.name), VolumeUse(measured.name, 0, 0))
    consumed, capacity = measured.consumed, measured.capacity
    yield "broker", printable(look.where.removeprefix("broker "))
    yield "volume", f"{printable(measured.name)}, with {', '.join(map(printable, measured.directories))}"
    yield "capacity", show_bytes(capacity)
    yield "consumed", f"{show_bytes(consumed)} ({_share(consumed, capacity)})"
    for label, limit in (("soft", use.soft), ("hard", use.hard)):
        if limit is not None:
            left = limit - consumed
            distance = f"{show_bytes(left)} left" if left > 0 else f"breached by {show_bytes(-left)}"
            yield label, f"{show_bytes(limit)}, {distance}"
    if use.soft is None and use.hard is None:
        yield "limits", "unknown: no plugin reports them (static.storage.*, factor.source), or a log directory is lost"
    of_volume = "" if use.factor is None else f"this volume's factor is {show_factor(use.factor)}; "
    cause = f" ({printable(look.cause)})" if look.cause and look.factor < 1 else ""
    yield "state", f"{of_volume}{look.state} with the factor {show_factor(look.factor)} is in force{cause}"
    growth = f"{show_rate(measured.growth)} over {show_seconds(measured.seconds)}"
    ends = {"its hard limit": measured.until(use.hard), "full": measured.until(capacity)}
    # An end that is reached already (0), or never (None), is left out.
    if forecasts := [f"{end} {show_time(seconds)}" for end, seconds in ends.items() if seconds]:
        growth += f"; at this growth {', '.join(forecasts)}"
    yield "growth", growth
    for text in measured.unread:
        yield "unread", printable(text)


def topic_rows(measured: MeasuredVolume) -> Iterable[Sequence[str]]:
    consumed = measured.consumed
    for topic in measured.topics:
        yield printable(topic.name), show_bytes(topic.used), _share(topic.used, consumed), show_rate(topic.written)
    other = consumed - sum(topic.used for topic in measured.topics)
    if other > 0:
        yield "(not Kafka's, or the file system's own)", show_bytes(other), _share(other, consumed), ""


def client_rows(look: Look) -> Iterable[Sequence[str]]:
    """The busiest producers that have their own quota, and the marked clients."""
    producers = [use for use in look.uses if use.quota_type is QuotaType.PRODUCE and use.scope == "client" and use.rate]
    busiest = sorted(producers, key=lambda use: -use.rate)[:_MOST_CLIENTS]
    topics, rates = dict(look.marks), {use.client: use.rate for use in busiest}
    for client in dict.fromkeys([*rates, *topics]):
        rate = f"{show_bytes(rates[client])}/s" if client in rates else ""
        name = f"user {printable(client.principal)}, client-id {printable(client.client_id)}"
        yield name, rate, printable(topics[client]) if client in topics else ""


def cut_row(cut: Cut) -> Sequence[str]:
    kept, base, show = cut.kept, cut.base, show_bytes if cut.kept.by_size else show_span
    if kept.compacted:
        return printable(cut.topic), "compacted: no retention applies", "", ""
    now = f"{show(base or 0)} a partition" if kept.by_size else show_span(kept.seconds or 0)
    if not kept.by_size and kept.seconds is None:
        now = f"for ever; its oldest closed segment is {show_span(base)} old" if base else "for ever"
    parts = ["" if base is None else f" ({show(base / share)})" for share in SHARES]
    return printable(cut.topic), now, *(show_bytes(size) + part for size, part in zip(cut.freed, parts, strict=True))


def stalled_uploads(cuts: Iterable[Cut]) -> str:
    """A line for each tiered topic with closed segments past their retention, which a cut would not free."""
    return "".join(
        f"\n  {printable(cut.topic)}: {show_bytes(cut.overdue)} are past the local retention and still here. Tiered "
        "storage deletes nothing before its upload, so uploads are late, and a shorter retention frees less than shown."
        for cut in cuts
        if cut.overdue
    )


def _share(part: float, whole: float) -> str:
    return show_share(part / whole if whole else None)
