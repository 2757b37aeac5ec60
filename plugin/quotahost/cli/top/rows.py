"""``top`` merges the looks of brokers into one, filters and sorts its rows, and shows them as a table or as JSON.

1. :func:`merged` makes one look of the looks at several brokers: the worst state, the silent brokers, and one row for
   each client, even if the client uses several brokers.
2. :class:`Choice` filters and sorts the rows. Options set it, and keys change it.
3. ``_COLUMNS`` has each column's value and its text. :func:`table` and :func:`whole` draw these columns, and
   :func:`values` returns them for programs.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Final, NamedTuple

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from quotahost.base.errors import Unusable
from quotahost.base.text import printable
from quotahost.cli.console import one_line
from quotahost.model import ClientUse, LimitedBy, Look, QuotaType, State
from quotahost.units.show import UNKNOWN, counted, rounded, show_digits, show_factor, show_seconds, show_share

_STATES: Final = {State.OPEN: "green", State.THROTTLE: "yellow", State.PAUSE: "bold red"}
_WITH_ADDRESS: Final = 112  # columns; a narrower terminal shows no addresses
_WIDE: Final = 96  # columns; a narrower terminal shows no quotas, because the share tells as much
LONGEST: Final = 200  # characters: a table cuts longer names, however wide the terminal is

# ---- one look of several ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClusterUse(ClientUse):
    """The use of several brokers by the clients of one scope.

    Kafka's quotas are for each broker, so rate, quota and limit are sums; but a quota of partition mutations is the
    active controller's alone. Delay and share are the largest, and ``bound`` is the strongest, of all brokers.
    """

    brokers: tuple[str, ...] = ()  # the brokers' ids
    largest_share: float | None = None  # the largest share of a broker's quota that is used; None without a quota

    @property
    def share(self) -> float | None:
        return self.largest_share


@dataclass(frozen=True, slots=True)
class ClusterLook(Look):
    """A look at a cluster."""

    looks: Mapping[str, Look]  # by the ids of the brokers that answered
    silent: Sequence[str]  # the ids of brokers that are alive and don't answer


def merged(looks: Mapping[str, Look], alive: Collection[str]) -> ClusterLook:
    """Merge the looks of one or more brokers into one; ``alive`` has the ids of the brokers that should answer."""
    silent = sorted(set(alive) - looks.keys(), key=numeric)
    where = f"{len(looks)} of {len(looks) + len(silent)} brokers"
    if silent:
        where += f" (silent: {', '.join(map(printable, silent[:5]))}{', ...' if len(silent) > 5 else ''})"
    worst = min(looks.values(), key=lambda look: (look.factor, not look.cause))
    # At factor 1 the cause is one broker's load, which slows single quota types; the text doesn't name that broker.
    cause = worst.cause if worst.factor < 1 or not worst.cause else f"{worst.where}: {worst.cause}"
    by_scope: dict[tuple[str, ...], dict[str, ClientUse]] = defaultdict(dict)
    for broker in sorted(looks, key=numeric):
        for use in looks[broker].uses:
            by_scope[str(use.quota_type), use.user, use.client_id, use.scope][broker] = use
    return ClusterLook(
        where, worst.state, worst.factor, min(look.limit_factor for look in looks.values()), cause,
        next(fence for fence in ("closed", "none", "open") if fence in {look.fence for look in looks.values()}),
        worst.affected, max(look.clients for look in looks.values()), max(look.clients_max for look in looks.values()),
        [_sum(uses) for uses in by_scope.values()], any(look.left_out for look in looks.values()), looks, silent,
    )  # fmt: skip


def _sum(by_broker: Mapping[str, ClientUse]) -> ClusterUse:
    uses = list(by_broker.values())
    first = uses[0]
    total = max if first.quota_type is QuotaType.CONTROLLER_MUTATION else sum
    quota, limit = (
        None if None in rates else total(rate or 0.0 for rate in rates)  # unlimited if it is unlimited on any broker
        for rates in ([use.quota for use in uses], [use.limit for use in uses])
    )
    shadow = next((use.shadow for use in uses if use.shadow), "")
    address = next((use.address for use in uses if use.address), "")
    return ClusterUse(
        first.quota_type, first.user, first.client_id, first.scope, sum(use.rate for use in uses), quota, limit,
        max(use.delay_ms for use in uses), max((use.bound for use in uses), key=[*LimitedBy].index),
        min(use.idle for use in uses), shadow, address, tuple(by_broker),
        max((use.share for use in uses if use.share is not None), default=None),
    )  # fmt: skip


def numeric(broker: str) -> tuple[int, str]:
    return int(broker) if broker.isascii() and broker.isdigit() else 0, broker


def require_one_client(use: ClientUse) -> None:
    """Raises Unusable if several clients share the row's quota: only a row of one client can be opened."""
    if use.scope != "client":
        raise Unusable(f"this is the quota of several clients ({printable(use.scope)})", "choose a row of one client")


# ---- filtering and sorting -------------------------------------------------------------------------------------


class Order(StrEnum):
    """The order of the rows: the largest value comes first; names are sorted from A to Z."""

    RATE = "rate"
    SHARE = "share"
    DELAY = "delay"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Choice:
    """The user's choice of rows and their order."""

    order: Order = Order.RATE
    type: QuotaType | None = None  # only rows of this quota type
    text: str = ""  # only rows with this text in user, client-id, address or "bound by"; case is ignored
    held: bool = False  # only rows that something holds back

    def rows(self, uses: Iterable[ClientUse]) -> list[ClientUse]:
        return sorted(filter(self._has, uses), key=self._place)

    def _place(self, use: ClientUse) -> tuple[Any, ...]:
        kind, name = list(QuotaType).index(use.quota_type), (use.user, use.client_id)
        if self.order is Order.NAME:
            return *name, use.scope, kind
        if self.order is Order.DELAY:
            return -use.delay_ms, kind, *name
        if self.order is Order.SHARE:
            return -(use.share or 0.0), kind, *name
        # Rates of different types have different units, so the rows are sorted by type first.
        return kind, -use.rate, *name

    def _has(self, use: ClientUse) -> bool:
        if self.type not in (None, use.quota_type) or (self.held and not use.is_held_back):
            return False
        is_idle = not use.rate and not use.is_held_back and not use.shadow
        texts = (use.user, use.client_id, _user(use), _client_id(use), use.address, _bound_by(use))
        return not is_idle and any(self.text.casefold() in text.casefold() for text in texts)


# ---- a row ------------------------------------------------------------------------------------------------------


_name: Final = partial(one_line, most=LONGEST)


def _user(use: ClientUse) -> str:
    """The user's name; for several users, a text in brackets."""
    several = "(all)" if use.client_id else f"({_name(use.scope)})"
    return _name(use.user) if use.user or use.scope == "client" else several


def _client_id(use: ClientUse) -> str:
    """The client-id; for several client-ids, a text in brackets."""
    several = "(all)" if use.scope == "user" else f"({_name(use.scope)})"
    return _name(use.client_id) if use.scope == "client" or not use.user else several


def _bound_by(use: ClientUse) -> str:
    return "" if use.bound_by == LimitedBy.NOTHING else use.bound_by


def _amount(rate: float | None, use: ClientUse) -> str:
    """A rate with three digits: ``1.25 MB/s``, ``12 %``, ``3 /s``; a dash if it is unlimited."""
    if rate is None:
        return UNKNOWN
    if use.quota_type is QuotaType.REQUEST:
        return f"{show_digits(rate, 3)} %"
    return rounded(rate, "/s" if use.quota_type is QuotaType.CONTROLLER_MUTATION else "B/s")


def _delay(use: ClientUse) -> str:
    """``12 ms``, ``1.3 s``; empty if Kafka has delayed nothing."""
    if not use.delay_ms:
        return ""
    return show_seconds(use.delay_ms / 1000) if use.delay_ms >= 1000 else f"{max(1, round(use.delay_ms))} ms"


class _Column(NamedTuple):
    """A column: its name and value in JSON; and if the table has the column, its heading and the text of a cell."""

    key: str
    value: Callable[[Any], Any]
    heading: str = ""
    cell: Callable[[Any], str] = str
    is_number: bool = False


_COLUMNS: Final = (
    _Column("user", lambda use: use.user, "user", _user),
    _Column("client_id", lambda use: use.client_id, "client-id", _client_id),
    _Column("scope", lambda use: use.scope),
    _Column("type", lambda use: str(use.quota_type), "type", lambda use: use.quota_type.removeprefix("CONTROLLER_")),
    _Column("rate", lambda use: use.rate, "rate", lambda use: _amount(use.rate, use), True),
    _Column("quota", lambda use: use.quota, "quota", lambda use: _amount(use.quota, use), True),
    _Column("limit", lambda use: use.limit),
    _Column("share", lambda use: use.share, "share", lambda use: show_share(use.share), True),
    _Column("delay_ms", lambda use: use.delay_ms, "delay", _delay, True),
    _Column("brokers", lambda use: list(use.brokers), "brokers", lambda use: str(len(use.brokers)), True),
    _Column("address", lambda use: use.address, "address", lambda use: _name(use.address)),
    _Column("bound_by", lambda use: use.bound.value, "bound by", lambda use: _name(_bound_by(use))),
    _Column("shadow", lambda use: use.shadow),
    _Column("idle_seconds", lambda use: use.idle),
)


def table(uses: Sequence[ClientUse], width: int, selected: int | None = None) -> Table:
    """The rows as a table, one line for each row. Names may be cut, numbers never."""
    is_shown = {
        "brokers": any(isinstance(use, ClusterUse) for use in uses),
        "quota": width >= _WIDE,
        "address": width >= _WITH_ADDRESS and any(use.address for use in uses),
    }
    columns = [column for column in _COLUMNS if column.heading and is_shown.get(column.key, True)]
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=True, header_style="reverse")
    for column in columns:
        if column.key in ("user", "client_id"):
            grid.add_column(column.heading, ratio=1, no_wrap=True, overflow="ellipsis", min_width=8)
        else:
            grid.add_column(column.heading, no_wrap=True, justify="right" if column.is_number else "left")
    for at, use in enumerate(uses):
        colour = "" if use.bound is LimitedBy.NOTHING else "red" if use.bound is LimitedBy.FENCE else "yellow"
        style = f"{colour} reverse" if at == selected else colour
        grid.add_row(*(Text(column.cell(use)) for column in columns), style=style)
    return grid


# ---- a look -----------------------------------------------------------------------------------------------------


def head(look: Look) -> list[Text]:
    """Two lines: broker or cluster, state, factor, fence and places in the table; and the cause, if there is one."""
    factor, of_limits = show_factor(look.factor), show_factor(look.limit_factor)
    text = f"factor {factor}"
    if of_limits != factor:
        text += f" (PRODUCE x{of_limits} now)"
    if look.affected >= 0:
        text += f" for writers to {counted(look.affected, 'topics')}"
    places = f"{look.clients:,} of {look.clients_max:,} places{' at most' if isinstance(look, ClusterLook) else ''}"
    where, state = (f"{_name(look.where)}  ", "bold"), (str(look.state), _STATES[look.state])
    line = Text.assemble(where, state, f"  {text}  fence {look.fence}  {places}")
    return [line, Text(f"cause: {_name(look.cause)}" if look.cause else "")]


def left_out(look: Look) -> str:
    return "less busy clients are left out" if look.left_out else ""


def whole(look: Look, choice: Choice, screen: Console) -> RenderableType:
    rows = table(choice.rows(look.uses), screen.width)
    # In a pipe, lines of blanks would be folded later. Rich's own measuring takes as long as half of the drawing.
    widths = [max(map(cell_len, map(str, [column.header, *column.cells]))) for column in rows.columns]
    rows.expand = sum(widths) + 2 * (len(widths) - 1) > screen.width
    return Group(*head(look), rows, *filter(None, [left_out(look)]))


def values(look: Look, choice: Choice) -> dict[str, Any]:
    """A look for programs: rates have the type's unit, 1 is a share of 100 %, and null means no quota or limit."""
    where: dict[str, Any] = {"broker": look.where}
    if isinstance(look, ClusterLook):
        where = {"brokers": {broker: _of_broker(one) for broker, one in look.looks.items()}, "silent": [*look.silent]}
    rows = [
        {column.key: column.value(use) for column in _COLUMNS if column.key != "brokers" or isinstance(use, ClusterUse)}
        for use in choice.rows(look.uses)
    ]
    return {
        **where, **_state(look), "limit_factor": look.limit_factor, "affected_topics": look.affected,
        "clients": look.clients, "clients_max": look.clients_max, "left_out": look.left_out, "rows": rows,
    }  # fmt: skip


def _of_broker(look: Look) -> dict[str, Any]:
    volumes = [asdict(use) for use in look.volumes if not use.budget]
    budgets = [asdict(use) | {"name": use.budget} for use in look.volumes if use.budget]
    return _state(look) | {"volumes": volumes, "budgets": budgets}


def _state(look: Look) -> dict[str, Any]:
    return {"state": str(look.state), "factor": look.factor, "cause": look.cause, "fence": look.fence}
