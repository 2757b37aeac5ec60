"""What proposal 035's own JSON schema leaves unchecked."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from quotahost.records.codec import Refused
from quotahost.records.snapshot import decode
from tests.unit.records.examples import SNAPSHOT_SCHEMA as SCHEMA


def record(**fields: Any) -> dict[str, Any]:
    empty = {"brokerId": "0", "snapshotAt": "2022-04-07T13:00:00Z", "hardLimit": {}, "softLimit": {}, "volumes": []}
    return empty | fields


def volumes(*names: str, **sizes: Any) -> list[dict[str, Any]]:
    return [{"volumeName": name, "capacity": 100, "consumed": 10} | sizes for name in names]


@pytest.mark.proves("proposal-035.schema-integers")
@pytest.mark.parametrize("limit", [{"type": "ConsumedSpace", "level": 1}, {"type": 5}, {"level": "much"}])
def test_the_schema_takes_any_limit_and_quotahost_only_sound_ones(limit: Any) -> None:
    """It describes ``limit_type`` and ``level`` beside ``properties``, where they check nothing."""
    assert "properties" not in SCHEMA["$defs"]["limit"]
    jsonschema.validate(record(hardLimit=limit), SCHEMA)
    with pytest.raises(Refused, match="hardLimit"):
        decode(b"0", json.dumps(record(hardLimit=limit)).encode())


@pytest.mark.proves("proposal-035.schema-integers")
@pytest.mark.parametrize(
    "fields",
    [
        {"hardLimit": {"type": "MinFreeBytes"}},
        {"hardLimit": {"type": "MinFreeBytes", "level": -1}},
        {"snapshotAt": "yesterday"},
        {"volumes": volumes("a", "a")},
        {"volumes": volumes(*(str(number) for number in range(1025)))},
        {"volumes": volumes("a", capacity=2**63)},
        {"schemaVersion": 2},
        {"ageMs": "5"},
        {"offlineLogDirs": [1]},
    ],
    ids=lambda fields: str(fields)[:60],
)
def test_what_is_valid_by_the_schema_and_means_nothing_is_refused(fields: Any) -> None:
    """Without a checker of formats, as draft 7 leaves these to the validator."""
    jsonschema.validate(record(**fields), SCHEMA)
    with pytest.raises(Refused, match=next(iter(fields))):
        decode(b"0", json.dumps(record(**fields)).encode())
