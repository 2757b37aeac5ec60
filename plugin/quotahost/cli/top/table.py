"""A look as people see it: a line for the state, one for its cause, and a table that fits the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from quotahost.cli.console import one_line
from quotahost.cli.top.rows import Choice, ClusterLook, ClusterUse
from quotahost.model import QuotaType, State
from quotahost.model.use import ClientUse, LimitedBy, Look
from quotahost.units.show import rounded

#: Narrower terminals leave the quota out, which the share tells.
_WIDE: Final = 96
_WITH_ADDRESS: Final = 112  # narrower ones leave the address out
_STYLES: Final = {State.OPEN: "green", State.THROTTLE: "yellow", State.PAUSE: "bold red"}
_TYPES: Final = {QuotaType.CONTROLLER_MUTATION: "MUTATION"}
_UNITS: Final = {QuotaType.REQUEST: "%", QuotaType.CONTROLLER_MUTATION: "/s"}
LONGEST: Final = 200  # characters of a name that a table has room for, however wide the terminal is


def _name(text: str) -> str:
    return one_line(text, LONGEST)


def amount(value: float | None, quota_type: QuotaType) -> str:
    """A rate with three digits: ``1.25 MB/s``, ``12 %``, ``3 /s``; a dash if it is unlimited."""
    if value is None:
        return "-"
    unit = _UNITS.get(quota_type, "B/s")
    if quota_type is QuotaType.REQUEST:
        return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
    return rounded(value, unit)


def share(use: ClientUse) -> str:
    """Percent of the quota; a dash without one."""
    if use.quota is None:
        return "-"
    return "0 %" if not use.rate else "> 0 %" if use.share is None else f"{use.share:.0%}".replace("%", " %")


def delay(use: ClientUse) -> str:
    """``12 ms``, ``1.3 s``; empty where Kafka has delayed nothing."""
    if not use.delay_ms:
        return ""
    return f"{use.delay_ms / 1000:,.1f} s" if use.delay_ms >= 1000 else f"{max(1, round(use.delay_ms))} ms"


def brokers(use: ClientUse) -> str:
    """How many brokers the clients use."""
    return str(len(use.brokers)) if isinstance(use, ClusterUse) else ""


def who(use: ClientUse) -> tuple[str, str]:
    """User and client-id as they stand in the table; in brackets what stands for several of them."""
    if use.scope == "client":
        return _name(use.user), _name(use.client_id)
    if use.user:
        return _name(use.user), "(all)" if use.scope == "user" else f"({_name(use.scope)})"
    return (f"({_name(use.scope)})", "") if not use.client_id else ("(all)", _name(use.client_id))


def state_line(look: Look) -> Text:
    """Whom the look is of, the state, the factor, the fence, and how full the table is."""
    factor = f"factor {look.factor:.3g}"
    if abs(look.limit_factor - look.factor) >= 0.0005 and look.fence != "closed":
        factor += f" (limits x {look.limit_factor:.3g})"
    if look.affected >= 0:
        factor += f" for writers to {look.affected:,} topics"
    most = " at most" if isinstance(look, ClusterLook) else ""
    places = f"{look.clients:,} of {look.clients_max:,} places{most}"
    return Text.assemble(
        (f"{_name(look.where)}  ", "bold"),
        (str(look.state), _STYLES[look.state]),
        f"  {factor}  fence {look.fence}  {places}",
    )


def cause_line(look: Look) -> Text:
    """Why the factor is below 1; empty if it isn't."""
    return Text(f"cause: {_name(look.cause)}" if look.cause and look.factor < 1 else "")


def left_out(look: Look) -> str:
    """That there are more clients than the look has rows for; empty if there are not."""
    return "more clients, less busy, are left out" if look.left_out else ""


def table(uses: Sequence[ClientUse], width: int, selected: int | None = None) -> Table:
    """The rows, on lines of one row each. Names are cut, and numbers never."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=True, header_style="reverse")
    names = {"no_wrap": True, "overflow": "ellipsis", "min_width": 8}
    grid.add_column("user", ratio=1, **names)  # type: ignore[arg-type]
    grid.add_column("client-id", ratio=1, **names)  # type: ignore[arg-type]
    grid.add_column("type", no_wrap=True)
    wide = width >= _WIDE
    for name in ("rate", *(("quota",) if wide else ()), "share", "delay"):
        grid.add_column(name, justify="right", no_wrap=True)
    several = any(isinstance(use, ClusterUse) for use in uses)
    if several:
        grid.add_column("brokers", justify="right", no_wrap=True)
    addresses = width >= _WITH_ADDRESS and any(use.address for use in uses)
    if addresses:
        grid.add_column("address", no_wrap=True)
    grid.add_column("bound by", no_wrap=True)
    for at, use in enumerate(uses):
        kind = use.quota_type
        quota = (amount(use.quota, kind),) if wide else ()
        bound = "" if use.bound_by == LimitedBy.NOTHING else _name(use.bound_by)
        numbers = (amount(use.rate, kind), *quota, share(use), delay(use), *([brokers(use)] if several else []))
        more = (_name(use.address), bound) if addresses else (bound,)
        cells = (*who(use), _TYPES.get(kind, str(kind)), *numbers, *more)
        grid.add_row(*map(Text, cells), style=_style(use, at == selected))
    return grid


def _style(use: ClientUse, selected: bool) -> str:
    colour = "" if use.bound is LimitedBy.NOTHING else "red" if use.bound is LimitedBy.FENCE else "yellow"
    return f"{colour} reverse" if selected else colour


def whole(look: Look, choice: Choice, width: int) -> RenderableType:
    """All of a look, for ``--once``."""
    rows = table(choice.rows(look.uses), width)
    return Group(state_line(look), cause_line(look), rows, *([left_out(look)] if look.left_out else []))
