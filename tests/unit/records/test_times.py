"""One grammar of times for every record and every reader; the pipeline's tests read these lists too."""

from datetime import UTC, datetime, timedelta
from types import ModuleType

import pytest

from quotahost.records import cluster_volumes, shares, snapshot, usage
from quotahost.records.codec import Refused
from tests.unit.records.examples import example

SECOND = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TAKEN = {
    "2026-01-02T03:04:05Z": SECOND,
    "2026-01-02T03:04:05.5Z": SECOND + timedelta(seconds=0.5),
    "2026-01-02T03:04:05.123456789Z": SECOND + timedelta(microseconds=123456),
    "2026-01-02T05:34:05+02:30": SECOND,
    "2026-01-01T09:05:05.000-17:59": SECOND,
    "2026-01-02T03:04:05-00:00": SECOND,
}
REFUSED = (
    "2026-01-02T03:04:05,5Z", "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05.1234567890Z",
    "2026-01-02T05:34:05+0230", "2026-01-02T05:34:05+02", "2026-01-02T05:34:05+19:00", "2026-01-02T05:34:05+02:60",
    "2026-01-02 03:04:05Z", "2026-01-02T03:04Z", "2026-01-02T03:04:05", "2026-01-02T03:04:60Z",
    "2026-01-02T24:00:00Z", "2026-13-02T03:04:05Z", "2026-02-30T03:04:05Z", "0000-01-02T03:04:05Z",
    "0001-01-01T00:00:00+05:00", "2026-01-02", "1767225600", "now", "", " 2026-01-02T03:04:05Z",
    "2026-01-02T03:04:05Z ", "2026-01-02T03:04:05Z\n", "\u0662026-01-02T03:04:05Z",
)  # fmt: skip
KINDS = [
    ("snapshot", snapshot, "snapshotAt", "captured_at"),
    ("cluster-volumes", cluster_volumes, "computedAt", "computed_at"),
    ("cluster-volumes", cluster_volumes, "newestSnapshotAt", "newest_snapshot_at"),
    ("usage", usage, "usageAt", "captured_at"),
    ("shares", shares, "computedAt", "computed_at"),
]
ALL = pytest.mark.parametrize(("kind", "of", "name", "attribute"), KINDS)


@ALL
@pytest.mark.parametrize(("text", "time"), TAKEN.items())
def test_a_date_time_of_rfc_3339_is_taken(
    kind: str, of: ModuleType, name: str, attribute: str, text: str, time: datetime
) -> None:
    assert getattr(of.decode(*example(kind, **{name: text})), attribute) == time


@ALL
@pytest.mark.parametrize("text", REFUSED)
def test_what_is_none_is_refused(kind: str, of: ModuleType, name: str, attribute: str, text: str) -> None:
    with pytest.raises(Refused, match=f"^{name}: ") as caught:
        of.decode(*example(kind, **{name: text}))
    assert caught.value.reason == "schema"
