"""Two pipelines by mistake: the one launched last wins, and when it is gone the other one continues."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from quotahost.pipeline.leadership import Leadership
from quotahost.records.cluster_volumes import ClusterRecord, encode

SILENCE = 15.0
NOW = 1_800_000_000_000  # ms since the epoch
AT = datetime(2027, 1, 15, tzinfo=UTC)
MOST = 2**63 - 1


def claims(run: int, cluster: str = "home") -> tuple[bytes, bytes]:
    return cluster.encode(), encode(ClusterRecord(cluster, run, 0, AT))


class World:
    """A pipeline of the cluster ``home`` that was launched at NOW."""

    def __init__(self, *records: tuple[bytes, bytes | None]) -> None:
        self.now, self.refused, self._come = 100.0, list[str](), records
        topic: Any = SimpleNamespace(to_the_end=lambda: self._come, poll=lambda seconds: self._come)
        self.leadership = Leadership(topic, SILENCE, {"home"}, lambda: NOW, self.refused.append, lambda: self.now)

    def reads(self, *records: tuple[bytes, bytes | None]) -> None:
        self._come = records
        self.leadership._poll()


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize(
    ("forged", "reasons"),
    [
        (claims(MOST), ["ahead"]), (claims(MOST, "other"), ["cluster"]), (claims(NOW + 5, "other"), ["cluster"]),
        ((b"home", b"nonsense"), ["json"]), ((b"", None), []),
    ],
)  # fmt: skip
def test_no_record_of_a_stranger_stops_the_pipeline(forged: tuple[bytes, bytes | None], reasons: list[str]) -> None:
    """Before it starts and while it runs: it leads, and goes on with runs that readers take."""
    before, running = World(forged), World()
    assert before.leadership.run == NOW
    running.reads(forged)
    assert not running.leadership.stands_by()
    for each in (before, running):
        assert encode(ClusterRecord("home", each.leadership.run, 0, AT))
        assert each.refused == reasons


def test_a_restart_takes_a_higher_run_though_its_clock_was_put_back() -> None:
    assert World(claims(NOW + 60_000)).leadership.run == NOW + 60_001


@pytest.mark.parametrize(
    ("runs", "stands_by", "logged"),
    [
        pytest.param((NOW, NOW), False, [], id="its own"),
        pytest.param((NOW + 1, NOW + 2), True, ["it was launched later and wins, this one stands by"], id="later"),
        pytest.param((NOW - 500, NOW - 499), False, ["this one was launched later and wins"], id="earlier"),
    ],
)
def test_the_one_launched_last_wins_and_that_is_logged_once_however_many_runs_are_claimed(
    world: World, caplog: pytest.LogCaptureFixture, runs: tuple[int, int], stands_by: bool, logged: list[str]
) -> None:
    for run in (*runs, *runs):
        world.reads(claims(run))
    assert world.leadership.stands_by() is stands_by
    assert world.leadership.run == NOW
    assert [text in found for text, found in zip(logged, caplog.messages, strict=True)] == [True] * len(logged)


def test_it_goes_on_with_a_higher_run_when_the_other_is_silent(world: World) -> None:
    ahead = NOW + 1_800_000  # its clock is half an hour ahead
    world.reads(claims(ahead))
    world.now += SILENCE
    assert world.leadership.stands_by()
    world.now += 0.1
    assert not world.leadership.stands_by()
    assert world.leadership.run > ahead
