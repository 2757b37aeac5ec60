"""A driver whose clock is wrong must not take living brokers for dead."""

from __future__ import annotations

import logging

import pytest

from quotahost.pipeline.kafka.clock import KafkaClock

NOW = 1_800_000_000_000  # ms


def test_a_wrong_clock_is_put_right_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = KafkaClock(lambda: NOW)
    with caplog.at_level(logging.WARNING):
        clock.correct(NOW - 600_000)
        clock.correct(NOW - 600_000)
    assert clock.now() == NOW - 600_000
    assert [record.getMessage() for record in caplog.records] == [
        "this machine's clock is 600 s off Kafka's; Kafka's counts"
    ]


def test_what_a_slow_answer_makes_of_it_is_left_alone() -> None:
    clock = KafkaClock(lambda: NOW)
    clock.correct(NOW - 600_000)
    clock.correct(NOW - 1500)
    assert clock.now() == NOW
