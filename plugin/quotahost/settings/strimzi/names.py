"""The properties of Strimzi's quotas plugin: one table, from which the translation and the document's table follow.

As ``StaticQuotaConfig`` of io.strimzi:kafka-quotas-plugin 0.3.1 defines them (Kafka's ConfigDef: INT, LONG, DOUBLE
as Java parses them). Names in here are without ``client.quota.callback.``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from quotahost.model import State
from quotahost.settings.declaration import PREFIX
from quotahost.settings.types import choose
from quotahost.units.parse import parse_duration, parse_share, parse_space

ADMIN: Final = "static.kafka.admin."
SAME: Final = "the same"
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
# Java's Double.parseDouble takes a suffix of the type, as in 0.05d.
_DOUBLE: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?")


@dataclass(frozen=True, slots=True)
class StrimziProperty:
    """One property of Strimzi's plugin.

    Attributes:
        name: as Strimzi has it; one that ends in ``*`` stands for a family.
        default: as Strimzi has it.
        ours: the property of ours that it is read as, ``SAME`` if we have its name, "" if it is not used.
        doc: what it means here, for the document.
        read: from Strimzi's text to ours; raises a ValueError with a remedy.
        parse: from our text to its value, by which two texts are compared.
        means: what a property of both plugins is, for a note.
    """

    name: str
    default: str
    ours: str
    doc: str
    read: Callable[[str], str] = str
    parse: Callable[[str], Any] = str
    means: str = ""

    @property
    def is_own(self) -> bool:
        """Whether only Strimzi's plugin has this name, so that it must be replaced."""
        return self.ours != SAME


def share(text: str) -> float:
    """A number from 0 to 1, as Java parses a double.

    Raises:
        ValueError: anything else.
    """
    match = _DOUBLE.fullmatch(text)
    value = float(match[1]) if match else -1.0
    if not 0 <= value <= 1:
        raise ValueError("must be a number from 0 to 1, such as 0.05")
    return value


def _whole(text: str, unit: str, least: int, most: int) -> int:
    if not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
        raise ValueError(f"must be a whole number of {unit} from {least} to {most}, without a unit")
    return int(text)


def _read_bytes(text: str) -> str:
    return str(_whole(text, "bytes", 0, 2**63 - 1))


def _read_ratio(text: str) -> str:
    # Without an exponent, which our shares don't take.
    return f"{Decimal(repr(abs(share(text)))):f}"


def _read_interval(text: str) -> str:
    """ "" for off: Strimzi's plugin looks at the disks only if the interval is above 0."""
    seconds = _whole(text, "seconds", -(2**31), 2**31 - 1)
    return f"{seconds}s" if seconds > 0 else ""


def _read_fallback(text: str) -> str:
    # Our fallback knows no factor between 0 and 1, so anything less than all is read as the safer one.
    return State.OPEN if share(text) == 1 else State.PAUSE


def _read_validity(text: str) -> str:
    # Our own property also takes 30s, which Java's Duration.parse refuses.
    if not text.upper().startswith("P"):
        raise ValueError("must be an ISO 8601 duration, such as PT5M")
    parse_duration(text)
    return text


def _rate(kind: str, doc: str, unit: str = "") -> StrimziProperty:
    means = f"the {kind} rate of the supplier static{unit}"
    return StrimziProperty(f"static.{kind}", "unlimited", SAME, doc, means=means)


AVAILABLE_BYTES: Final = StrimziProperty(
    "static.storage.per.volume.limit.min.available.bytes",
    "none",
    "static.storage.hard.min-free-bytes",
    "Producers are stopped at it, now to `floor.bytes`. Without a `factor.source` it means `log-dirs`.",
    _read_bytes,
    parse_space,
)
AVAILABLE_RATIO: Final = StrimziProperty(
    "static.storage.per.volume.limit.min.available.ratio",
    "none",
    "static.storage.hard.min-free-percent",
    "The same. Both together are an error.",
    _read_ratio,
    parse_share,
)
CHECK_INTERVAL: Final = StrimziProperty(
    "static.storage.check-interval",
    "60",
    "plugin.log-dirs.interval",
    "Whole seconds; 0 or less is no `factor.source`. 1 means 1, where theirs protects nothing.",
    _read_interval,
    parse_duration,
)
FALLBACK: Final = StrimziProperty(
    "static.throttle.factor.fallback",
    "1.0",
    "fallback.action",
    "1 is OPEN, 0 is PAUSE, anything between is PAUSE, the safer, with a warning.",
    _read_fallback,
    lambda text: choose(text, (State.PAUSE, State.OPEN)),
)
VALIDITY: Final = StrimziProperty(
    "static.throttle.factor.validity.duration",
    "PT5M",
    "validity",
    "ISO 8601, above zero. It is the lease of the host as well.",
    _read_validity,
    parse_duration,
)
CLIENT_ID_PREFIX: Final = StrimziProperty(
    "static.kafka.clientIdPrefix", "__strimzi", "", "Not used: own clients are named `quotahost-NODE`."
)
PROPERTIES: Final = (
    _rate("produce", "One total for all clients of a broker (`static.scope`)."),
    _rate("fetch", "The same for fetches."),
    _rate("request", "The same for requests, in percent of one thread's time.", ", in percent"),
    StrimziProperty(
        "static.excluded.principal.name.list",
        "none",
        SAME,
        "Excluded whichever supplier answers, client quotas too.",
        means="the list of principals that nothing throttles",
    ),
    AVAILABLE_BYTES,
    AVAILABLE_RATIO,
    CHECK_INTERVAL,
    FALLBACK,
    VALIDITY,
    StrimziProperty(
        f"{ADMIN}*",
        "",
        SAME,
        "The Java client's names, handed to plugins that need a Kafka client, in librdkafka's names, keystores as PEM; "
        "`kafka.*` wins. `log-dirs` needs none. All values are secrets.",
    ),
    CLIENT_ID_PREFIX,
)
OWN: Final = tuple(each.name for each in PROPERTIES if each.is_own)
SYNONYMS: Final = (*OWN, f"{ADMIN}bootstrap.servers")  # to suggest for a misspelt name


def live_names() -> list[str]:
    """Full names of Strimzi's own properties whose change takes effect without a restart."""
    return [PREFIX + each.name for each in PROPERTIES if each.is_own and each.ours]


def table() -> str:
    """All of Strimzi's properties as a Markdown table, names without ``client.quota.callback.``."""
    lines = ["| Strimzi's property | its default | read as | here |", "|---|---|---|---|"]
    for each in PROPERTIES:
        ours = f"`{each.ours}`" if each.is_own and each.ours else each.ours
        default = f"`{each.default}`" if each.default else ""
        lines.append(f"| `{each.name}` | {default} | {ours} | {each.doc} |")
    return "\n".join(lines) + "\n"
