"""The names of Strimzi's quotas plugin: the README's table of them, and how their values are read.

As ``StaticQuotaConfig`` of io.strimzi:kafka-quotas-plugin 0.3.1 defines them (Kafka's ConfigDef: INT, LONG, DOUBLE
as Java parses them). Names in here are without ``client.quota.callback.``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from quotahost.settings.declaration import PREFIX
from quotahost.units.parse import parse_duration

ADMIN: Final = "static.kafka.admin."
CLIENT_ID_PREFIX: Final = "static.kafka.clientIdPrefix"
AVAILABLE_BYTES: Final = "static.storage.per.volume.limit.min.available.bytes"
AVAILABLE_RATIO: Final = "static.storage.per.volume.limit.min.available.ratio"
CHECK_INTERVAL: Final = "static.storage.check-interval"
FALLBACK: Final = "static.throttle.factor.fallback"
VALIDITY: Final = "static.throttle.factor.validity.duration"
SHARED: Final = {
    "static.produce": "the produce rate of the supplier static",
    "static.fetch": "the fetch rate of the supplier static",
    "static.request": "the request rate of the supplier static, in percent",
    "static.excluded.principal.name.list": "the list of principals that nothing throttles",
}
DEFAULTS: Final = {CHECK_INTERVAL: "60", FALLBACK: "1.0", VALIDITY: "PT5M"}

_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_DOUBLE: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?")
_LEAST_RATIO: Final = 1e-8  # for 0: on no volume more than a file system can't hand out anyway


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the README's table: their name and default, ours, and what it means here."""

    name: str
    default: str
    ours: str
    doc: str


LINES: Final = (
    Line(
        "static.produce", "unlimited", "the same", "One total for all clients of a broker (`static.scope`)."
    ),
    Line("static.fetch", "unlimited", "the same", "The same for fetches."),
    Line(
        "static.request", "unlimited", "the same", "The same for requests, in percent of one thread's time."
    ),
    Line(
        "static.excluded.principal.name.list",
        "none",
        "the same",
        "Excluded whichever supplier answers, client quotas too.",
    ),
    Line(
        AVAILABLE_BYTES,
        "none",
        "static.storage.hard.min-free-bytes",
        "Producers are stopped at it, now to `floor.bytes`. Without a `factor.source` it means `log-dirs`.",
    ),
    Line(
        AVAILABLE_RATIO,
        "none",
        "static.storage.hard.min-free-percent",
        "The same. Both together are an error.",
    ),
    Line(
        CHECK_INTERVAL,
        DEFAULTS[CHECK_INTERVAL],
        "plugin.log-dirs.interval",
        "Whole seconds; 0 or less is no `factor.source`. 1 means 1, where theirs protects nothing.",
    ),
    Line(
        FALLBACK,
        DEFAULTS[FALLBACK],
        "fallback.action",
        "1 is OPEN, 0 is PAUSE, anything between is PAUSE, the safer, with a warning.",
    ),
    Line(
        VALIDITY, DEFAULTS[VALIDITY], "validity", "ISO 8601, above zero. It is the lease of the host as well."
    ),
    Line(
        f"{ADMIN}*",
        "",
        "the same",
        "The Java client's names, handed to plugins that need a Kafka client, in librdkafka's names, keystores as PEM; "
        "`kafka.*` wins. `log-dirs` needs none. All values are secrets.",
    ),
    Line(CLIENT_ID_PREFIX, "__strimzi", "", "Not used: own clients are named `quotahost-NODE`."),
)
OWN: Final = tuple(line.name for line in LINES if line.name not in SHARED and not line.name.endswith("*"))
SYNONYMS: Final = (*OWN, f"{ADMIN}bootstrap.servers")
LIVE: Final = tuple(name for name in OWN if name != CLIENT_ID_PREFIX)


def is_theirs(name: str) -> bool:
    """Whether this name, without the common prefix, is Strimzi's and was not ours."""
    return name in OWN or (name.startswith(ADMIN) and name != ADMIN)


def live_names() -> list[str]:
    """Full names of theirs whose change takes effect without a restart."""
    return [PREFIX + name for name in LIVE]


def table() -> str:
    """All of theirs as a Markdown table, names without ``client.quota.callback.``."""
    lines = ["| Strimzi's property | its default | read as | here |", "|---|---|---|---|"]
    for line in LINES:
        ours = line.ours if " " in line.ours or not line.ours else f"`{line.ours}`"
        default = f"`{line.default}`" if line.default else ""
        lines.append(f"| `{line.name}` | {default} | {ours} | {line.doc} |")
    return "\n".join(lines) + "\n"


def _read_bytes(text: str) -> str:
    """0 is read as 1: no volume has less than nothing, and ours are sizes above 0."""
    return str(max(1, _whole(text, "bytes", 0, 2**63 - 1)))


def _read_ratio(text: str) -> str:
    return f"{Decimal(repr(max(_LEAST_RATIO, _share(text)))):f}"


def _read_interval(text: str) -> str:
    """ "" for off: theirs checks only above 0."""
    seconds = _whole(text, "seconds", -(2**31), 2**31 - 1)
    return f"{seconds}s" if seconds > 0 else ""


def _read_fallback(text: str) -> str:
    return "OPEN" if _share(text) == 1 else "PAUSE"


def _read_validity(text: str) -> str:
    if not text.upper().startswith("P"):
        raise ValueError("must be an ISO 8601 duration, such as PT5M")
    parse_duration(text)
    return text


def _whole(text: str, what: str, least: int, most: int) -> int:
    if not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
        raise ValueError(f"must be a whole number of {what} from {least} to {most}, without a unit")
    return int(text)


def _share(text: str) -> float:
    match = _DOUBLE.fullmatch(text)
    value = float(match[1]) if match else -1.0
    if not 0 <= value <= 1:
        raise ValueError("must be a number from 0 to 1, such as 0.05")
    return value


READERS: Final[dict[str, Callable[[str], str]]] = {
    AVAILABLE_BYTES: _read_bytes,
    AVAILABLE_RATIO: _read_ratio,
    CHECK_INTERVAL: _read_interval,
    FALLBACK: _read_fallback,
    VALIDITY: _read_validity,
}
