"""What proposal 035's own JSON schema leaves unchecked."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from quotahost.records.codec import Refused
from quotahost.records.snapshot import decode

SCHEMA = json.loads(files("quotahost.records").joinpath("schemas/snapshot.json").read_text(encoding="utf-8"))


def record(limit: Any) -> dict[str, Any]:
    return {"brokerId": "0", "snapshotAt": "2022-04-07T13:00:00Z", "hardLimit": limit, "softLimit": {}, "volumes": []}


@pytest.mark.parametrize("limit", [{"type": "ConsumedSpace", "level": 1}, {"type": 5}, {"level": "much"}])
def test_the_schema_takes_any_limit_and_quotahost_only_sound_ones(limit: Any) -> None:
    """It describes ``limit_type`` and ``level`` beside ``properties``, where they check nothing."""
    assert "properties" not in SCHEMA["$defs"]["limit"]
    jsonschema.validate(record(limit), SCHEMA)
    with pytest.raises(Refused, match="hardLimit"):
        decode(b"0", json.dumps(record(limit)).encode())
