"""A driver whose clock is wrong must not make living brokers look dead, nor must one wrong timestamp of Kafka's."""

import logging

import pytest

from quotahost.pipeline.clock import WITNESSES, KafkaClock, Written

NOW = 1_800_000_000_000  # ms


class Machine:
    """A machine's clock, which a test sets, and the time that passes; in ms."""

    def __init__(self) -> None:
        self.passed = self.set = 0

    def clock(self) -> KafkaClock:
        return KafkaClock(lambda: NOW + self.passed + self.set, lambda: self.passed)


def written(ahead: int, took: int = 10) -> Written:
    """A record that Kafka, so many ms ahead, wrote just before it answered, ``took`` ms after it was sent."""
    return Written(NOW - took, NOW + ahead, NOW)


@pytest.mark.proves("faults.clock")
def test_a_wrong_clock_is_corrected_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = Machine().clock()
    with caplog.at_level(logging.WARNING):
        for _ in range(3 * WITNESSES):
            clock.correct(written(-600_000))
    assert clock.now() == pytest.approx(NOW - 600_000, abs=10)
    assert [record.getMessage() for record in caplog.records] == [
        "this machine's clock is 600 s off Kafka's; the pipeline goes by Kafka's"
    ]


def test_one_timestamp_far_off_moves_no_clock() -> None:
    clock = Machine().clock()
    for _ in range(10):
        clock.correct(written(0))
        clock.correct(written(-(10**12)))  # in 1970
    assert clock.now() == NOW
    for _ in range(WITNESSES):
        clock.correct(written(-600_000))
    ahead = clock.ahead
    clock.correct(written(0))
    assert clock.ahead == ahead


def test_an_answer_that_took_long_shifts_no_clock() -> None:
    clock = Machine().clock()
    for _ in range(WITNESSES):
        clock.correct(Written(NOW - 30_000, NOW - 30_000, NOW))  # written at once, confirmed half a minute later
        clock.correct(Written(NOW - 30_000, NOW, NOW))  # or written late
    assert clock.now() == NOW


def test_after_a_machine_has_slept_it_goes_by_kafkas_time_again() -> None:
    """Its clock is right at once, and its time has stood still."""
    machine = Machine()
    clock = machine.clock()
    machine.set = 3_600_000
    assert clock.now() == NOW
    for _ in range(WITNESSES):
        clock.correct(Written(NOW + 3_600_000, NOW + 3_600_000, NOW + 3_600_000))
    assert (clock.now(), clock.ahead) == (NOW + 3_600_000, 0)


def test_a_broker_whose_clock_is_off_is_not_believed_while_snapshots_are_new_by_this_machines() -> None:
    """It leads a topic of the pipeline: its clock would make all brokers look silent."""
    clock = Machine().clock()

    def told(ahead: int) -> None:
        for _ in range(WITNESSES):
            clock.correct(written(ahead))

    told(3_600_000)  # at the start, when nobody has been heard
    assert clock.ahead == pytest.approx(3_600_000, abs=10)
    clock.heard(1000, 60_000)
    for ahead in (3_600_000, -3_600_000):
        told(ahead)
        assert clock.ahead == 0
    clock.heard(61_000, 60_000)  # then no clock can make them more silent
    told(3_600_000)
    assert clock.ahead > 0
