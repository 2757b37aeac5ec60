"""A driver whose clock is wrong must not make living brokers look dead."""

from __future__ import annotations

import logging

import pytest

from quotahost.pipeline.kafka.clock import KafkaClock

NOW = 1_800_000_000_000  # ms


def test_a_wrong_clock_is_corrected_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = KafkaClock(lambda: NOW)
    with caplog.at_level(logging.WARNING):
        clock.correct(NOW - 600_000)
        clock.correct(NOW - 600_000)
    assert clock.now() == NOW - 600_000
    assert [record.getMessage() for record in caplog.records] == [
        "this machine's clock is 600 s off Kafka's; the pipeline goes by Kafka's"
    ]


def test_a_difference_that_a_slow_answer_makes_is_ignored() -> None:
    clock = KafkaClock(lambda: NOW)
    clock.correct(NOW - 600_000)
    clock.correct(NOW - 1500)
    assert clock.now() == NOW
