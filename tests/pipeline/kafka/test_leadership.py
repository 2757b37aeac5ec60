"""Two pipelines by mistake: the one launched last wins, and when it is gone the other one continues."""

from __future__ import annotations

import logging

import pytest

from quotahost.pipeline.kafka.leadership import Leadership

SILENCE = 15.0


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Empty:
    def end(self) -> int:
        return 0

    def at(self) -> int:
        return 0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def leadership(clock: Clock) -> Leadership:
    made = Leadership(SILENCE, clock)
    made.begin(Empty(), launched=1000)  # type: ignore[arg-type]
    return made


def test_alone_it_publishes(leadership: Leadership) -> None:
    leadership.note(1000)
    assert not leadership.stands_by()
    assert leadership.run == 1000


def test_it_stands_by_for_one_that_was_launched_later_and_logs_it_once(
    leadership: Leadership, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        leadership.note(2000)
        leadership.note(2000)
    assert leadership.stands_by()
    assert len(caplog.records) == 1
    assert "it was launched later and wins" in caplog.text


def test_it_wins_over_one_that_was_launched_earlier_and_logs_it(
    leadership: Leadership, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        leadership.note(500)
    assert not leadership.stands_by()
    assert "this one was launched later and wins" in caplog.text


def test_it_goes_on_with_a_higher_run_when_the_other_is_silent(leadership: Leadership, clock: Clock) -> None:
    leadership.note(2**50)  # its clock is far ahead
    clock.now += SILENCE
    assert leadership.stands_by()
    clock.now += 0.1
    assert not leadership.stands_by()
    assert leadership.run > 2**50
