"""The one rule of age: no clock's jump and no wrong clock makes contents fresh or stale."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotahost.records.fields import MAX_DELAY_MS, age, delay_ms

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WRITTEN = 1_700_000_000_000
VALIDITY = 60_000
LONG = st.integers(0, 2**63 - 1)
OFF = st.integers(-(10**9), 10**9)  # by how many seconds a clock may be wrong


def at(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


@pytest.mark.proves("proposal-035.snapshot-time")
def test_the_age_begins_with_the_capture_and_not_with_the_writing() -> None:
    """A look that was 30 s old when it was published is 35 s old 5 s later, for every reader."""
    stated = delay_ms(30_000, at(WRITTEN - 30_000), WRITTEN, VALIDITY)
    by_clocks = delay_ms(None, at(WRITTEN - 30_000), WRITTEN, VALIDITY)
    assert stated == by_clocks == 30_000
    assert age(1005.0, 1000.0, stated / 1000) == 35.0  # by arrival
    assert age(WRITTEN + 5_000, WRITTEN, stated) == 35_000  # by Kafka's clock


@given(st.integers(0, MAX_DELAY_MS), OFF, OFF)
def test_a_stated_delay_is_the_delay_whatever_the_clocks_of_publisher_and_kafka_say(
    stated: int, publisher: int, kafka: int
) -> None:
    captured, written = at(WRITTEN + publisher * 1000), WRITTEN + kafka * 1000
    assert delay_ms(stated, captured, written, VALIDITY) == stated


@given(OFF, OFF, st.integers(1, 10**9))
def test_without_it_a_wrong_clock_costs_half_of_validity_at_most(publisher: int, kafka: int, validity: int) -> None:
    captured, written = at(WRITTEN + publisher * 1000), WRITTEN + kafka * 1000
    assert 0 <= delay_ms(None, captured, written, validity) <= validity / 2


@given(st.one_of(st.none(), LONG), st.one_of(st.none(), LONG), LONG)
def test_whatever_a_stranger_states_the_delay_is_bounded(
    stated: int | None, written: int | None, validity: int
) -> None:
    assert 0 <= delay_ms(stated, at(WRITTEN), written, validity) <= MAX_DELAY_MS


@given(st.integers(0, MAX_DELAY_MS), st.integers(0, 10**9), OFF, OFF)
def test_a_reader_that_saw_the_arrival_and_one_that_came_later_agree(
    delay: int, passed: int, monotonic: int, kafka: int
) -> None:
    written = WRITTEN + kafka * 1000
    assert age(monotonic + passed, monotonic, delay) == age(written + passed, written, delay) == passed + delay


@given(OFF, st.integers(0, MAX_DELAY_MS))
def test_no_clock_that_goes_back_makes_contents_younger_than_they_were_when_written(back: int, delay: int) -> None:
    assert age(WRITTEN + back, WRITTEN, delay) >= delay
