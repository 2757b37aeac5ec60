"""Tests the factor source ``log-dirs``: the volumes that it knows, and what is unknown."""

from collections.abc import Callable, Iterator

import pytest

from harness.system.waiting import eventually
from quotahost.broker.plugins.factor_sources.direct import LogDirs
from quotahost.model import LogDir, Volume
from quotahost.testing.broker import FakeBroker
from tests.fakes.plugin_context import Clock, context

DIR_1 = LogDir(1, "/d", 100, 40, "")
DIR_2 = LogDir(2, "/d", 100, 0, "")
Make = Callable[..., LogDirs]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[LogDirs] = []

    def source(broker: FakeBroker, clock: Clock | None = None, **given: str) -> LogDirs:
        own = LogDirs.Section.model_validate({"interval": "5ms"})
        made.append(LogDirs(context(broker, "log-dirs", own, **given), clock or Clock()))
        return made[-1]

    yield source
    for each in made:
        each._context.closing.close()


ONE, BOTH = {Volume("1", "/d", 100, 60)}, {Volume("1", "/d", 100, 60), Volume("2", "/d", 100, 100)}


def known(source: LogDirs) -> tuple[set[Volume], tuple[str, ...]] | None:
    """The known volumes, and the texts of what is unknown."""
    answer = source.read()
    return (set(answer.volumes), answer.unknown) if answer else None


def answered(source: LogDirs, clock: Clock) -> None:
    """Wait until the source has asked the brokers at the clock's time, whether they answered or not."""
    eventually(lambda: source._answer is not None and source._answer[0] == clock.now)


@pytest.mark.parametrize(
    ("directory", "words"),
    [
        (LogDir(2, "/d", None, None, "KAFKA_STORAGE_ERROR"), "broker 2, log dir /d: KAFKA_STORAGE_ERROR"),
        (LogDir(2, "", None, None, "TIMED_OUT"), "broker 2, log dir ?: TIMED_OUT"),
        (LogDir(2, "", None, None, ""), "broker 2, log dir ?: no answer"),
        (LogDir(2, "/d", None, 5, ""), "broker 2, log dir /d: the broker reports no capacity"),
        (None, "broker 2 does not report its log directories"),
    ],
)
def test_what_a_broker_does_not_report_is_unknown(make: Make, directory: LogDir | None, words: str) -> None:
    directories = [DIR_1, directory] if directory else [DIR_1]
    source = make(FakeBroker(brokers={1: False, 2: False}, directories=directories))
    eventually(lambda: known(source) == (ONE, (words,)))


def test_of_a_fenced_broker_the_last_answer_counts_and_in_strict_form_none_until_it_is_unregistered(make: Make) -> None:
    broker, clock = FakeBroker(brokers={1: False, 2: False}, directories=[DIR_1, DIR_2]), Clock()
    lenient, strict = make(broker, clock), make(broker, clock, fenced__brokers="unknown")
    eventually(lambda: known(lenient) == known(strict) == (BOTH, ()))
    broker.brokers, broker.directories = {1: False, 2: True}, [DIR_1]
    clock.now += 1000
    for source, expected in ((lenient, (BOTH, ())), (strict, (ONE, ("broker 2 is fenced",)))):
        answered(source, clock)
        assert known(source) == expected
    later = make(broker)
    eventually(lambda: known(later) == (ONE, ()), what="a fenced broker that never answered doesn't count")
    broker.brokers = {1: False}
    eventually(lambda: known(lenient) == known(strict) == (ONE, ()))


def test_a_broker_or_cluster_that_falls_silent_counts_for_validity(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    broker, clock = FakeBroker(brokers={1: False, 2: False}, directories=[DIR_1, DIR_2]), Clock()
    source = make(broker, clock, validity="60s")
    assert make(FakeBroker()).read() is None, "nothing is known before the first answer"
    eventually(source.read)
    broker.directories = [DIR_1, LogDir(2, "", None, None, "TIMED_OUT")]
    clock.now += 60
    answered(source, clock)
    assert known(source) == (BOTH, ())
    clock.now += 1
    lacking = (ONE, ("broker 2, log dir ?: TIMED_OUT",))
    eventually(lambda: known(source) == lacking)
    broker.brokers = TimeoutError("no answer")
    eventually(lambda: caplog.records)
    clock.now += 60
    assert known(source) == lacking
    clock.now += 1
    silent = "the brokers have not reported their log directories for validity + interval (60.005 s)"
    assert known(source) == (ONE, (silent,)), "the last volumes still apply"
    assert len(caplog.records) == 1
