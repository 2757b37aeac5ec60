"""One record of each kind as JSON, with all of its fields."""

import json
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


def example(kind: str, **fields: Any) -> tuple[bytes, bytes]:
    """The key and the value of the example, with fields replaced."""
    content = EXAMPLES[kind]
    key = "users/alice" if kind == "quotas" else content[_KEY.get(kind, "brokerId")]
    return key.encode(), json.dumps(content | fields).encode()
