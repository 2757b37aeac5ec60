"""One record of each kind as JSON, with all of its fields."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Final

#: Proposal 035's schema, word for word.
SNAPSHOT_SCHEMA: Final[dict[str, Any]] = json.loads(
    files("quotahost.records").joinpath("schemas/snapshot.json").read_text(encoding="utf-8")
)
EXAMPLES: Final[dict[str, dict[str, Any]]] = {"snapshot": SNAPSHOT_SCHEMA["examples"][0]} | {
    "cluster-volumes": {
        "version": 1,
        "clusterId": "4L6g3nShT-eMCtK--X86sw",
        "run": 1795295519718,
        "sequence": 42,
        "computedAt": "2026-11-21T21:30:00.623Z",
        "newestSnapshotAt": "2026-11-21T21:30:00.411Z",
        "reporting": 2,
        "stale": 1,
        "missing": 0,
        "staleBrokers": ["3"],
        "missingBrokers": [],
        "offline": 1,
        "offlineLogDirs": [{"brokerId": "2", "logDir": "/data/2: Input/output error"}],
        "volumeCount": 2,
        "capacity": 2000000000000,
        "consumed": 1300000000000,
        "smallestFactor": 0.5,
        "kinds": 1,
        "affectedTopics": ["orders"],
        "fullest": [
            {
                "brokerId": "1",
                "volumeName": "/dev/sdb",
                "capacity": 1000000000000,
                "consumed": 900000000000,
                "softLimit": {"type": "MinFreePercentage", "level": 15},
                "hardLimit": {"type": "MinFreePercentage", "level": 5},
                "bytesPerSecond": 12500000.0,
                "secondsToFull": 4000.0,
            }
        ],
        "worst": {
            "ConsumedBytes": [],
            "MinFreeBytes": [],
            "MinFreePercentage": [
                {
                    "brokerId": "1",
                    "volumeName": "/dev/sdb",
                    "capacity": 1000000000000,
                    "consumed": 900000000000,
                    "softLimit": {"type": "MinFreePercentage", "level": 15},
                    "hardLimit": {"type": "MinFreePercentage", "level": 5},
                    "bytesPerSecond": 12500000.0,
                    "secondsToFull": 4000.0,
                }
            ],
        },
    },
    "usage": {
        "version": 1,
        "clusterId": "4L6g3nShT-eMCtK--X86sw",
        "brokerId": "1",
        "usageAt": "2026-11-21T21:30:00.123Z",
        "clients": [
            {
                "user": "alice",
                "clientId": "app",
                "quotaType": "PRODUCE",
                "rate": 2912345.5,
                "demand": None,
                "quota": 3000000.0,
            }
        ],
    },
    "shares": {
        "version": 1,
        "clusterId": "4L6g3nShT-eMCtK--X86sw",
        "brokerId": "1",
        "run": 1795295519718,
        "sequence": 42,
        "computedAt": "2026-11-21T21:30:00.623Z",
        "clients": [
            {"user": "alice", "clientId": "app", "quotaType": "PRODUCE", "share": 2900000.0, "quota": 3000000.0}
        ],
    },
    "look": {
        "version": 1,
        "clusterId": "4L6g3nShT-eMCtK--X86sw",
        "brokerId": "1",
        "state": "THROTTLE",
        "factor": 0.5,
        "limitFactor": 0.52,
        "cause": "broker 3, volume /dev/sdb",
        "fence": "open",
        "affectedTopics": -1,
        "clients": 6,
        "clientsMax": 50000,
        "uses": [
            {
                "quotaType": "PRODUCE",
                "user": "alice",
                "clientId": "app",
                "scope": "client",
                "rate": 1012345.5,
                "quota": 2000000.0,
                "limit": 1040000.0,
                "delayMs": 134.0,
                "boundBy": "factor",
                "idleSeconds": 0.2,
                "shadow": "",
            }
        ],
        "answers": [{"watcher": "host-1-ab", "lines": ["broker\t42\t1"]}],
        "leftOut": False,
        "volumes": [
            {
                "volumeName": "/dev/sdb",
                "capacity": 1000000000000,
                "consumed": 850000000000,
                "soft": 800000000000.0,
                "hard": 900000000000.0,
                "factor": 0.5,
            }
        ],
        "marks": [{"user": "alice", "clientId": "app", "topic": "orders"}],
        "opened": [
            {
                "volumeName": "/dev/sdb",
                "capacity": 1000000000000,
                "consumed": 850000000000,
                "directories": ["/data/1"],
                "seconds": 2.0,
                "growth": 1000000.0,
                "topics": [{"name": "orders", "used": 600000000000, "written": 1012345.5}],
                "unread": [],
            }
        ],
    },
    "watch": {"version": 1, "watcher": "host-1-ab", "seconds": 30, "client": {"user": "alice", "clientId": "app"}},
}
_KEY: Final = {"cluster-volumes": "clusterId", "watch": "watcher"}


def example(kind: str, **fields: Any) -> tuple[bytes, bytes]:
    """The key and the value of the example, with fields replaced."""
    content = EXAMPLES[kind]
    return content[_KEY.get(kind, "brokerId")].encode(), json.dumps(content | fields).encode()
