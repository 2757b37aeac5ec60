"""A real volume that stays between its limits for minutes, while an eager producer goes on filling it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import pytest

from harness.clients.load import KAFKA_WINDOW
from harness.clients.producer import ProducerLoad
from harness.kafka.admin import create_topic
from harness.plugin import FENCE
from harness.system.waiting import eventually
from tests.broker.support.node import THROTTLE, callback_node, state
from tests.broker.support.volumes import MEGA, QUICK_DELETION, VolumeWatch, mean, never_ran_out_of_space, small_volume

pytestmark = pytest.mark.broker

QUOTA: Final = 4 * MEGA  # bytes/s
KEPT_FOR: Final = 30  # seconds for which the topic keeps its data
SOFT: Final = 20 * MEGA  # bytes used
HARD: Final = SOFT + QUOTA * KEPT_FOR  # at the full quota the topic would keep as much as lies between the limits
SETTINGS: Final = {
    "factor.source": "local",
    "fence.authorizer": "none",
    "static.produce": str(QUOTA),
    "static.storage.soft": str(SOFT),
    "static.storage.hard": str(HARD),
}
HELD_FOR: Final = 12 * KAFKA_WINDOW  # seconds


@pytest.mark.proves("proposal-035.progressive")
@pytest.mark.long
def test_a_volume_is_held_between_its_limits_for_minutes_and_producers_get_what_the_factor_says(tmp_path: Path) -> None:
    keeps = {"retention.ms": str(KEPT_FOR * 1000), "segment.ms": "1000", "segment.bytes": str(1 << 20)}
    node = callback_node(tmp_path, SETTINGS, properties=FENCE | QUICK_DELETION)
    with small_volume(node.data_dirs[0], 2 * HARD), node:
        create_topic(node, "t", config=keeps)
        with (
            ProducerLoad(node.client_config(client_id="eager"), "t") as load,
            VolumeWatch(node, node.data_dirs) as watch,
        ):
            eventually(lambda: state(node) == THROTTLE, what="soft limit crossed")
            settled = time.monotonic() + 2 * KEPT_FOR
            eventually(lambda: time.monotonic() > settled + HELD_FOR, timeout=600, poll=1)
            achieved = load.meter.smooth_rate(settled, settled + HELD_FOR)
        held = watch.since(settled)
        assert {sample.state for sample in held} == {"THROTTLE"}, "it is never open, and never stops"
        assert achieved == pytest.approx(mean([sample.factor for sample in held]) * QUOTA, rel=0.15)
        assert watch.most_used(0) < HARD
        assert load.errors == []
        assert never_ran_out_of_space(node)
