"""One record of each kind as JSON with all fields, and texts that every reader, or no reader, accepts as a time."""

import json
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

#: Proposal 035's schema, word for word.
SNAPSHOT_SCHEMA: Final[dict[str, Any]] = json.loads(
    files("quotahost.records").joinpath("schemas/snapshot.json").read_text(encoding="utf-8")
)
EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "snapshot": SNAPSHOT_SCHEMA["examples"][0],
    **json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8")),
    "quotas": {"version": 1, "produce": 3e6, "fetch": "unlimited"},
}
_KEY: Final = {"cluster-volumes": "clusterId", "watch": "watcher"}

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
    "0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-01:00", "2026-01-02", "1767225600", "now", "",
    " 2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z ", "2026-01-02T03:04:05Z\n", "\u0662026-01-02T03:04:05Z",
)  # fmt: skip


def example(kind: str, **fields: Any) -> tuple[bytes, bytes]:
    """The key and the value of the example, with fields replaced."""
    content = EXAMPLES[kind]
    key = "users/alice" if kind == "quotas" else content[_KEY.get(kind, "brokerId")]
    return key.encode(), json.dumps(content | fields).encode()
