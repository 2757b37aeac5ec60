"""What one client uses."""

from typing import Any

from quotahost.model import QuotaType
from quotahost.model.use import ClientUse, LimitedBy


def use(user: str = "alice", client_id: str = "app", **changes: Any) -> ClientUse:
    """Alice's app, slowed by a factor; ``changes`` are facts of ClientUse."""
    facts: dict[str, Any] = {
        "quota_type": QuotaType.PRODUCE, "user": user, "client_id": client_id, "scope": "client", "rate": 900.0,
        "quota": 1000.0, "limit": 500.0, "delay_ms": 250.0, "bound": LimitedBy.FACTOR, "idle": 0.0,
    }  # fmt: skip
    return ClientUse(**(facts | changes))
