"""Makes Java's answer to the question ``holders``: the state, and which clients have which metric tags."""

from typing import Any

from quotahost.model import QuotaType
from tests.fakes import dump as raw

PRODUCE, FETCH, REQUEST = QuotaType.PRODUCE, QuotaType.FETCH, QuotaType.REQUEST


def holder(
    principal: str, client_id: str, tags: tuple[str, str] | None = None, *, type: QuotaType = PRODUCE,
    base: float | None = None, stand_in: float | None = None, rate: float | None = None, supplier: str = "static",
    shadow: str = "", whole: bool = False, newcomer: bool = False, marked: bool = False, passes: bool = False,
) -> list[Any]:  # fmt: skip
    """One client, or all clients of a principal with ``whole``, and the rate that Kafka measures for its tags."""
    user_tag, client_tag = tags or (principal, client_id)
    return [
        principal, client_id, whole, type.value, user_tag, client_tag, base, stand_in, rate, newcomer, supplier, shadow,
        marked, passes,
    ]  # fmt: skip


def state(**changes: Any) -> dict[str, Any]:
    """A state with low floors; ``closed`` closes the fence."""
    closed = changes.pop("closed", False)
    fence = {"installed": closed, "closed": closed, "counts_only": closed}
    return raw.state(fence=fence, floors={"PRODUCE": 10.0, "FETCH": 10.0}, **changes)


def dump(*holders: list[Any], **changes: Any) -> dict[str, Any]:
    """The whole answer; ``changes`` are those of ``state``."""
    return {"state": state(**changes), "holders": list(holders)}
