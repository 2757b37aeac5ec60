"""A replay as JSON, for scripts. Times are seconds since 1970, sizes bytes, factors 0 to 1."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from quotahost.replay.values import ClientCourse, Course, Replay, Where


def as_json(replay: Replay) -> str:
    """All but the readings of the volumes; of the factors each change."""
    return json.dumps(
        {
            "since": replay.since,
            "until": replay.until,
            "step": replay.step,
            "factors": [_where(each) for each in replay.where],
            "volumes": [_volume(each) for each in replay.volumes],
            "clients": [_client(each) for each in replay.clients],
            "notes": list(replay.notes),
        },
        indent=2,
    )


def _where(where: Where) -> dict[str, Any]:
    return {
        "cluster": where.cluster,
        "broker": where.broker or None,
        "then": asdict(where.then),
        "new": asdict(where.new),
        "unknown_s": where.unknown_s,
        "course": [point._asdict() for point in where.factors],
    }


def _volume(course: Course) -> dict[str, Any]:
    return {
        **course.name._asdict(),
        "then": {**asdict(course.then), "peak": course.peak_then},
        "new": {**asdict(course.new), "peak": course.peak_new, "full_at": course.full_at},
        "capacity": course.capacity,
        "estimated": course.estimated,
    }


def _client(client: ClientCourse) -> dict[str, Any]:
    return {**asdict(client), "then": client.then._asdict(), "new": client.new._asdict()}
