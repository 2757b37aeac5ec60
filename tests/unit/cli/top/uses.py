"""Makes looks and uses by hand."""

from collections.abc import Sequence
from typing import Any

from quotahost.model import QuotaType, State
from quotahost.model.use import ClientUse, LimitedBy, Look


def use(user: str = "alice", client_id: str = "app", **changes: Any) -> ClientUse:
    """A client that uses half of its quota of 2 MB/s."""
    facts: dict[str, Any] = {
        "quota_type": QuotaType.PRODUCE, "user": user, "client_id": client_id, "scope": "client", "rate": 1e6,
        "quota": 2e6, "limit": 2e6, "delay_ms": 0.0, "bound": LimitedBy.NOTHING, "idle": 0.1,
    }  # fmt: skip
    return ClientUse(**facts | changes)


def slowed(user: str = "alice", client_id: str = "app", **changes: Any) -> ClientUse:
    """A client whose quota of 1 kB/s a factor halves; its rate is still 900 B/s."""
    facts: dict[str, Any] = {"rate": 900.0, "quota": 1e3, "limit": 500.0, "delay_ms": 250.0, "bound": LimitedBy.FACTOR}
    return use(user, client_id, **facts | changes)


def look(uses: Sequence[ClientUse] = (), **changes: Any) -> Look:
    """A look of broker 1 with ordinary values."""
    facts: dict[str, Any] = {
        "where": "broker 1 (pid 42)", "state": State.OPEN, "factor": 1.0, "limit_factor": 1.0, "cause": "",
        "fence": "open", "affected": -1, "clients": 3, "clients_max": 100, "uses": uses, "left_out": False,
    }  # fmt: skip
    return Look(**facts | changes)
