"""Two vectors become volumes: a volume is sound in both of them, and anything else is unknown."""

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotahost.broker.plugins.factor_sources.prometheus import MAX_SENTENCES, Answer, Series, volumes_of
from quotahost.model import ClusterVolumes, Volume

Rows = list[tuple[str, str, float]]
of = partial(volumes_of, labels=("broker", "disk"))


def answer(rows: Rows, *warnings: str) -> Answer:
    return Answer(tuple(Series({"broker": b, "disk": v}, value) for b, v, value in rows), warnings)


def volumes(capacity: Rows, used: Rows, *, available: bool = True, expected: tuple[str, ...] = ()) -> Any:
    return of(answer(capacity), answer(used), available=available, expected=expected)


def test_available_bytes_are_left_and_consumed_bytes_are_not() -> None:
    expected = ClusterVolumes((Volume("1", "/data", 100, 30),))
    assert volumes([("1", "/data", 100.0)], [("1", "/data", 70.0)]) == expected
    assert volumes([("1", "/data", 100.0)], [("1", "/data", 30.0)], available=False) == expected
    fuller = volumes([("1", "/", 100.0)], [("1", "/", 101.0)], available=False)
    assert fuller == ClusterVolumes((Volume("1", "/", 100, 101),)), "a volume may be fuller than its capacity"


FINE: Rows = [("1", "/", 100.0)]


@pytest.mark.parametrize(
    ("capacity", "available", "sentence"),
    [
        ([*FINE, ("2", "/", 1.0)], FINE, "broker '2', volume '/' has capacity, but no available"),
        (FINE, [*FINE, ("2", "/", 1.0)], "broker '2', volume '/' has available, but no capacity"),
        ([*FINE, ("2", "/", float("nan"))], [*FINE, ("2", "/", 1.0)], "has nan as capacity"),
        ([*FINE, ("2", "/", 1.0)], [*FINE, ("2", "/", float("inf"))], "has inf as available"),
        ([*FINE, ("2", "/", -5.0)], [*FINE, ("2", "/", 1.0)], "has -5 as capacity"),
        ([*FINE, ("2", "/", 1e+300)], [*FINE, ("2", "/", 1.0)], "has 1e+300 as capacity"),
        ([*FINE, ("2", "/", 0.0)], [*FINE, ("2", "/", 0.0)], "has a capacity of 0"),
        ([*FINE, ("2", "/", 5.0)], [*FINE, ("2", "/", 6.0)], "has 6 bytes available of 5"),
        (FINE + [("2", "/", 9.0)] * 2, [*FINE, ("2", "/", 1.0)], "is 2 times in the capacity query"),
        ([*FINE, ("2", "/", 9.0)], FINE + [("2", "/", 1.0)] * 3, "is 3 times in the available query"),
        ([*FINE, ("", "/", 9.0)], FINE, "a series of the capacity query has no label 'broker'"),
        (FINE, [*FINE, ("2", "", 9.0)], "a series of the available query has no label 'disk'"),
    ],
)  # fmt: skip
def test_what_is_not_sound_is_unknown_and_no_volume(capacity: Rows, available: Rows, sentence: str) -> None:
    result = volumes(capacity, available)
    assert len(result.unknown) == 1
    assert sentence in result.unknown[0]
    assert result.volumes == (Volume("1", "/", 100, 0),)


def test_a_warning_of_the_server_or_nothing_at_all_is_unknown() -> None:
    result = of(answer(FINE), answer(FINE, "a shard is down"), available=True)
    assert result.unknown == ("the available query came with a warning: a shard is down",)
    assert volumes([], []).unknown == ("the queries find no series",)


def test_an_expected_broker_without_a_sound_volume_is_unknown() -> None:
    broken: Rows = [*FINE, ("2", "/", float("nan"))]
    result = volumes(broken, [*FINE, ("2", "/", 1.0)], expected=("1", "2", "3"))
    assert "expected broker '2' has no volume" in result.unknown
    assert "expected broker '3' has no volume" in result.unknown
    assert not [text for text in result.unknown if "'1'" in text]


def test_there_are_at_most_20_sentences_and_the_last_says_how_many_are_left_out() -> None:
    sentences = volumes([("1", str(n), 1.0) for n in range(MAX_SENTENCES + 5)], []).unknown
    assert len(sentences) == MAX_SENTENCES
    assert sentences[-1] == "and 6 more"
    assert len(volumes([("1", str(n), 1.0) for n in range(MAX_SENTENCES)], []).unknown) == MAX_SENTENCES


def test_a_very_long_or_unprintable_label_stays_one_short_line() -> None:
    (sentence,) = volumes([("x" * 100_000 + "\n", "a\nb", 1.0)], []).unknown
    assert len(sentence) < 500
    assert "\n" not in sentence


NAMES = st.sampled_from(["", "1", "2"])
ROWS = st.lists(st.tuples(NAMES, NAMES, st.floats() | st.integers(-1, 200).map(float)), max_size=6)


@given(ROWS, ROWS, st.booleans())
def test_whatever_comes_is_a_sound_volume_or_unknown(capacity: Rows, used: Rows, available: bool) -> None:
    result = volumes(capacity, used, available=available)
    assert all(v.capacity > 0 and v.consumed >= 0 for v in result.volumes)
    places = {(b, v) for b, v, _ in capacity + used}
    assert result.unknown or {(v.broker, v.name) for v in result.volumes} == places
