"""Higher limits never give a lower factor at the same consumption, and none at all give 1."""

from __future__ import annotations

from hypothesis import given
from hypothesis import settings as options
from hypothesis import strategies as st

from quotahost.replay.play import play
from quotahost.report.values import Bucket, Name
from tests.unit.replay.runs import plan, report, settings

NAME = Name("c", "1", "/data")
USED = st.lists(st.integers(0, 1000), min_size=2, max_size=40)
LEVELS = st.tuples(st.integers(1, 900), st.integers(0, 100)).map(lambda each: (each[0], each[0] + each[1]))


def history(used: list[int], levels: tuple[int, int]) -> dict[Name, list[Bucket]]:
    return {NAME: [Bucket(60.0 * i, each, each, each, 1000, *levels) for i, each in enumerate(used)]}


@options(max_examples=40, deadline=None)
@given(USED, LEVELS, st.integers(0, 200))
def test_higher_limits_never_give_a_lower_factor(used: list[int], levels: tuple[int, int], more: int) -> None:
    own = settings(factor__source="local", pause__resume__free_share="0")
    higher = levels[0] + more, levels[1] + more
    low, high = (play(report(history(used, each)), plan(own)) for each in (levels, higher))
    assert high.where[0].then.lowest >= low.where[0].then.lowest - 0.01  # the host takes steps of 0.01
    assert high.volumes[0].then.pause_s <= low.volumes[0].then.pause_s


@options(max_examples=40, deadline=None)
@given(USED, LEVELS)
def test_without_limits_the_factor_is_1_and_no_volume_emptier(used: list[int], levels: tuple[int, int]) -> None:
    found = play(report(history(used, levels)), plan(settings(factor__source="local")))
    assert [point.new for point in found.where[0].factors] == [1.0] * len(found.where[0].factors)
    assert all(point.new >= point.then for point in found.volumes[0].points)


@options(max_examples=40, deadline=None)
@given(USED, LEVELS)
def test_the_limits_of_then_give_what_was_recorded(used: list[int], levels: tuple[int, int]) -> None:
    soft, hard = levels
    own = settings(factor__source="local", static__storage__soft=str(soft), static__storage__hard=str(hard))
    found = play(report(history(used, levels)), plan(own))
    assert found.where[0].then == found.where[0].new
    assert [point.new for point in found.volumes[0].points] == used
