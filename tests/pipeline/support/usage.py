"""What clients used, as brokers tell it."""

from collections.abc import Sequence
from datetime import timedelta

from quotahost.model import QuotaType
from quotahost.records.usage import Usage, Used
from tests.pipeline.support.rows import NOON

WRITE, READ = QuotaType.PRODUCE, QuotaType.FETCH


def used(
    rate: float, user: str = "alice", client: str = "app", kind: QuotaType = WRITE, demand: float | None = None
) -> Used:
    """In a record that comes 10 s after the one before."""
    return Used(user, client, kind, rate, demand, 1e6, 10 * rate)


def told(*records: tuple[float, str, Sequence[Used]]) -> list[Usage]:
    """Records of (seconds after NOON, broker, clients)."""
    return [Usage(broker, NOON + timedelta(seconds=at), tuple(clients), "c") for at, broker, clients in records]
