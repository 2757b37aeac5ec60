"""Raw dumps made by hand: the JSON of Java's ``org.quotahost.table.Dump`` with ordinary values."""

import copy
from typing import Any, Final

MARK: Final = {"topic": "orders", "place": "broker 3, volume /dev/sdb", "held": False, "budget": "", "factor": 0.5}

_STATE: Final[dict[str, Any]] = {
    "pid": 42, "node": "1", "version": "0.1.0",
    "enforced": True, "shadow": [], "factor": 1.0, "cause": "", "limit_factor": 1.0,
    "factor_types": ["PRODUCE"],
    "type_factors": {},
    "floors": {"PRODUCE": 35000.0, "FETCH": 35000.0, "REQUEST": 1.0, "CONTROLLER_MUTATION": 0.1},
    "fence": {"installed": True, "closed": False, "counts_only": False}, "creation_refused": False,
    "topics": {"threshold": 0.0, "rate": 0.0, "over": [], "in_shadow": []},
    "controller": "1", "properties": {"log.dirs": "/data/1,/data/2"},
    "clients": 3, "clients_max": 100, "affected_topics": -1, "held": {}, "sources": [],
}  # fmt: skip

_ROW: Final[dict[str, Any]] = {
    "type": "PRODUCE", "user": "alice", "client_id": "app", "base": 1e6, "limit": 1e6, "slowed_limit": 1e6,
    "stand_in": None, "newcomers": 4e6, "exempt": False, "rate": 1000.0, "delay_ms": 0.0, "slowed_rate": None,
    "slowed_delay_ms": None, "tokens": None, "idle_ms": 100, "turned_back": "", "mark": None, "passes": False,
    "address": "",
}  # fmt: skip


def state(**changes: Any) -> dict[str, Any]:
    """The state of broker 1 with changes; a change of a mapping, such as ``fence``, is merged into the mapping."""
    made = copy.deepcopy(_STATE)
    for name, value in changes.items():
        made[name] = made[name] | value if isinstance(made.get(name), dict) else value
    return made


def row(**changes: Any) -> dict[str, Any]:
    """A scope of alice's app, whose quota is 1 MB/s and whose rate is 1 kB/s."""
    return {**_ROW, "slowed_limit": changes.get("limit", _ROW["limit"]), **changes}


def client(*rows: dict[str, Any], state: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """The answer to the question ``client`` about alice's app, with these rows."""
    more = {"supplier": "static", "known": True, "failed": False, "shadow": ""}
    quotas = [{**more, **each} for each in rows or (row(),)]
    told = {"principal": "alice", "client_id": "app", "exempt": False, "passes": False, "mark": None, "turned_back": ""}
    return {"state": state or _STATE, "client": {**told, "quotas": quotas, **changes}}


def usage(*rows: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The answer to the question ``usage``, in a state with these changes."""
    return {"state": state(**changes), "usage": list(rows)}


def uses(*rows: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The answer to the question ``uses``, in a state with these changes."""
    return {"state": state(**changes), "uses": list(rows)}
