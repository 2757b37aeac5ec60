"""The volumes of all brokers as people see them: a list, the fullest first, and what fills one of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from quotahost.cli.console import lines_of, table
from quotahost.cli.explain.volume.command import show
from quotahost.cli.explain.volume.facts import BrokerVolumes
from quotahost.cli.explain.volume.wording import VOLUMES, volume_row
from quotahost.cli.top.merged import numeric
from quotahost.cli.top.screen import Answer, Question
from quotahost.model import Look, QuotaType, VolumeUse
from quotahost.model.volume_use import MeasuredVolume

_KEYS: Final = 9  # that open a volume
_CLIENTS: Final = 10
_ELSEWHERE: Final = "What a shorter retention would free: quotahost explain --volume on the broker's machine."


def listed(looks: Mapping[str, Look]) -> Answer:
    """All volumes by what is left of them, of looks by the brokers' ids."""
    volumes = sorted(
        ((broker, each) for broker, look in looks.items() for each in look.volumes),
        key=lambda one: (*_left(one[1]), numeric(one[0]), one[1].name),
    )
    silent = sorted((broker for broker, look in looks.items() if not look.volumes), key=numeric)
    rows = [_row(at, *each) for at, each in enumerate(volumes, 1)]
    lines = lines_of(lambda screen: screen.print(table(("", "broker", *VOLUMES), rows))) if rows else []
    if silent:
        brokers = f"broker{'s' if len(silent) > 1 else ''} {', '.join(silent)}"
        lines += ["", f"unknown of {brokers}: nothing watches volumes there (factor.source, the task publish-volumes)"]
    return Answer(lines, [Question(volume=each.name, broker=broker) for broker, each in volumes[:_KEYS]])


def _left(volume: VolumeUse) -> tuple[float, float]:
    return 1.0 if volume.factor is None else volume.factor, -volume.consumed / max(volume.capacity, 1)


def _row(at: int, broker: str, volume: VolumeUse) -> list[str]:
    return [str(at) if at <= _KEYS else "", broker, *volume_row(volume)]


def opened(broker: str, look: Look, found: MeasuredVolume) -> list[str]:
    """What ``quotahost explain --volume`` says of it, but for what a shorter retention would free."""
    return [*lines_of(partial(show, broker=_facts(broker, look), found=found)), "", _ELSEWHERE]


def _facts(broker: str, look: Look) -> BrokerVolumes:
    numbers = {
        each.name: {
            name: value
            for name, value in (("Soft", each.soft), ("Hard", each.hard), ("Factor", each.factor))
            if value is not None
        }
        for each in look.volumes
    }
    producers = [use for use in look.uses if use.quota_type is QuotaType.PRODUCE and use.scope == "client"]
    busiest = sorted(producers, key=lambda use: -use.rate)[:_CLIENTS]
    clients = [(use.client, use.rate) for use in busiest if use.rate > 0]
    return BrokerVolumes("", broker, look.state, look.factor, look.cause, (), numbers, clients, look.marks)
