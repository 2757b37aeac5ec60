"""Tests the model: values that are accepted or refused, when a limit is reached, and which topics a budget has.

Also sizes, rates and durations: texts that operators may write, refusals with a remedy, and how values are shown.
"""

import math
from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quotahost.model import Factor, Limit, LimitType, Quota, QuotaType, Scope, Volume
from quotahost.model.budgets import Budget, Topics
from quotahost.units import parse as units
from quotahost.units.parse import parse_count, parse_duration, parse_limit, parse_percent, parse_quantity, parse_size
from quotahost.units.show import (
    counted,
    shorthand,
    show_bytes,
    show_duration,
    show_factor,
    show_limit,
    show_number,
    show_rate,
    show_share,
    show_time,
)
from tests.fakes.plugin_context import OwnFloat


def volume_with(changes: dict[str, Any]) -> Volume:
    given: dict[str, Any] = {"broker": "1", "name": "/data", "capacity": 1, "consumed": 1} | changes
    return Volume(**given)


@pytest.mark.parametrize(
    ("make", "values", "words"),
    [
        (Quota, [0, 0.0, -0.0, -1, -1e-300, math.nan, math.inf, -math.inf], "must be finite and above 0"),
        (Quota, ["10", b"10", True, False, [10], Decimal(10), 1j, object()], "must be a number or None"),
        (Scope.group, ["", None], "non-empty name"),
        (Scope, ["client", QuotaType.PRODUCE, 1], "of a ScopeKind"),
        (Factor, [-0.01, 1.01, math.nan, math.inf, -math.inf, "0.5", None, True, False], r"number from 0\.0 to 1\.0"),
        *((partial(Limit, kind), [-1, -0.5, math.nan, math.inf, -math.inf, True, False, "5", None, 1j],
           f"the level of a {kind} limit must be") for kind in LimitType),
        (partial(Limit, LimitType.MIN_FREE_PERCENTAGE), [100.5], "at most 100 %"),
        (partial(Limit, LimitType.MIN_FREE_BYTES), [0.5], "whole bytes"),
        *((volume_with, [{name: wrong} for wrong in values], name.rstrip("s")) for name, values in (
            ("broker", [1]), ("name", [None]), ("capacity", [-1, 1.0]), ("consumed", [True, "1", -1]), ("soft", [5]),
            ("hard", ["5%"]),
            ("topics", [{"t"}, frozenset({1})]))),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused(make: Callable[[Any], object], values: list[Any], words: str) -> None:
    for value in values:
        with pytest.raises(ValueError, match=words):
            make(value)


# ---- limits and volumes ----

*_, PERCENT = LimitType
SIZES = st.integers(0, 2**63 - 1)


@given(st.floats(0, 100) | st.integers(0, 100), SIZES)
def test_a_percentage_leaves_at_least_that_much_free_and_not_a_byte_more(level: float, capacity: int) -> None:
    free = capacity - Limit(PERCENT, level).consumed_at(capacity)
    demanded = capacity * Fraction(str(level)) / 100
    assert demanded <= free < demanded + 1


def test_a_number_as_numpys_is_taken() -> None:
    assert Limit(PERCENT, OwnFloat(0.1)).consumed_at(1000) == 999
    assert type(Factor(OwnFloat(0.1)).value) is float


# ---- budgets ----

LETTERS = st.text("ab.", min_size=1, max_size=4)
PATTERNS = LETTERS | st.text("ab.", max_size=3).map(lambda begin: begin + "*")


@given(st.lists(st.lists(PATTERNS, min_size=1, max_size=3), max_size=6), LETTERS)
def test_a_topic_belongs_to_each_budget_that_names_its_begin(patterns: Sequence[Sequence[str]], topic: str) -> None:
    budgets = [Budget(str(number), tuple(of), 1) for number, of in enumerate(patterns)]

    def names(pattern: str) -> bool:
        return topic.startswith(pattern[:-1]) if pattern.endswith("*") else topic == pattern

    expected = {budget.name for budget in budgets if any(map(names, budget.topics))}
    found = [budget.name for budget in Topics(budgets).budgets(topic)]
    assert (set(found), len(found)) == (expected, len(expected))


def test_a_budget_of_all_topics_leaves_kafkas_own_and_quotahosts_out() -> None:
    """Otherwise nobody could raise a budget that is used up, because `apply` writes to one of these topics."""
    found = Topics([Budget("all", ("*",), 1), Budget("named", ("__quotahost_quotas", "__consumer*"), 1)])
    for topic, name in (("t", "all"), ("__quotahost_quotas", "named"), ("__consumer", "named")):
        assert [budget.name for budget in found.budgets(topic)] == [name]


# ---- units ----

MILLISECOND = timedelta(milliseconds=1)
CENTURY = timedelta(days=36500)

QUANTITIES = {
    "250": 250, "10M": 10_000_000, "1.5Ki": 1536, " 10 M ": 10_000_000, ".5": 0.5, "1e3": 1000, "0.1M": 100_000,
    "1Ti": 2**40,
}  # fmt: skip


@pytest.mark.parametrize(
    ("parse", "expected"),
    [
        (parse_quantity, QUANTITIES), (parse_limit, QUANTITIES | {"unlimited": None}),
        (parse_count, {"50K": 50_000, "2147483647": 2**31 - 1}), (parse_percent, {"200 %": 200, "200": 200}),
        (parse_duration, {
            "PT5M": timedelta(minutes=5), "pt0.5s": timedelta(milliseconds=500), "P2D": timedelta(days=2),
            "P1DT2H3M4S": timedelta(days=1, hours=2, minutes=3, seconds=4), "30s": timedelta(seconds=30),
            "1ms": MILLISECOND, "1m": timedelta(minutes=1), "1.5 h": timedelta(minutes=90), "36500d": CENTURY}),
    ],
)  # fmt: skip
def test_a_text_is_read_exactly(parse: Callable[[str], object], expected: dict[str, object]) -> None:
    assert {text: parse(text) for text in expected} == expected


@pytest.mark.parametrize(
    ("parse", "texts", "words"),
    [
        pytest.param(parse_quantity, ["", "ten", "10MB", "10m", "10k", "1,000", "1_000", "nan", "inf", "10 M B", "0x10",
                                      "٣"], "Ki, Mi, Gi, Ti", id="not a quantity"),
        pytest.param(parse_quantity, ["0", "-1", "-10M", "1e999", "0K", "1e-999", "1e999999999999999999999"],
                     r"finite and above 0|out of range", id="a quantity is finite and above 0"),
        pytest.param(parse_quantity, [True, None, [1], object()], "is a ", id="only texts and numbers are read"),
        pytest.param(parse_limit, [" "], "unlimited", id="a limit may be unlimited, but not empty"),
        pytest.param(parse_size, ["9223372036854775808", "8388608Ti", "1e30", "10000000T"],
                     "at most 9223372036854775807 bytes", id="a size is at most Java's largest long"),
        pytest.param(parse_size, ["0", "-1", "0.5", "1e-400"], "at least one byte", id="a size is at least one byte"),
        pytest.param(parse_count, ["1.5", "0", "2147483648", "-3", "many"], "number", id="a count is a whole number"),
        pytest.param(parse_duration, ["", "P", "PT", "P1DT", "PT5", "P1Y", "P2W", "5 min", "1h30m", "-5s", "soon"],
                     "write ISO 8601 such as PT5M, .* such as 30s", id="not a duration"),
        pytest.param(parse_duration, ["0s", "0.9ms", "36501d", "PT0S", "99999999999999999999d"], "from 1ms to 36500d",
                     id="a duration is from a millisecond to a century"),
        pytest.param(parse_duration, ["30"], "write 30s for seconds or 30ms for milliseconds", id="a unit is missing"),
    ],
)  # fmt: skip
def test_a_wrong_text_is_refused_with_a_right_one(parse: Callable[[Any], object], texts: list[Any], words: str) -> None:
    for text in texts:
        with pytest.raises(ValueError, match=words):
            parse(text)


@given(st.integers(1, units.MAX_SIZE))
@example(9007199254740993)  # 2**53 + 1, which no float can represent
@example(units.MAX_SIZE)
def test_a_size_keeps_its_last_byte(size: int) -> None:
    assert parse_size(str(size)) == size
    assert size == units.MAX_SIZE or parse_size(f"{size}.9") == size, "a fraction of a byte is dropped"
    shown = show_limit(size, "bytes").partition(" ")[0].replace(",", "")
    assert parse_size(shown) == size


@given(st.integers(1, 10**12), st.sampled_from(sorted(units.SCALES)))
def test_every_unit_multiplies_exactly_and_a_shorthand_reads_back_as_itself(number: int, unit: str) -> None:
    size = number * units.SCALES[unit]
    assert parse_quantity(f"{number}{unit}") == float(size)
    assert shorthand(float(size)) == "" or parse_quantity(shorthand(float(size))) == float(size)
    if size <= units.MAX_SIZE:
        assert parse_size(f"{number}{unit}") == size
        assert shorthand(size) == "" or parse_size(shorthand(size)) == size


@given(st.floats(1e-9, 1e18, exclude_max=True))
@example(1e-9)
@example(0.1)
def test_a_shown_number_reads_back_as_itself(value: float) -> None:
    assert parse_quantity(show_number(value).replace(",", "")) == value


@given(st.timedeltas(MILLISECOND, CENTURY))
@example(timedelta(hours=1))
def test_a_shown_duration_reads_back_as_itself(value: timedelta) -> None:
    shown = show_duration(value).partition(" s")[0].replace(",", "")
    assert parse_duration(f"{shown}s") == parse_duration(value) == value


HOUR = 3600.0
DAY = 24 * HOUR


@pytest.mark.parametrize(
    ("show", "shown"),
    [
        (partial(counted, what="bytes/s"), {0: "0 bytes/s", 1: "1 byte/s", 1.5: "1.5 bytes/s"}),
        (partial(show_limit, unit="bytes"), {1: "1 byte", 2000: "2,000 bytes (2K)"}),
        (show_factor, {1.0: "1", 2 / 3: "0.6667", 0.00001234567: "0.00001235"}),
        (partial(show_limit, unit="B"), {
            10_000_000: "10,000,000 B (10M)", 10 * 1024**2: "10,485,760 B (10Mi)", 12_345: "12,345 B", 0.05: "0.05 B",
            None: "unlimited"}),
        (show_duration, {
            timedelta(minutes=1): "60 s", timedelta(seconds=0.5): "0.5 s", timedelta(hours=1): "3,600 s (1h)",
            timedelta(days=2): "172,800 s (2d)"}),
        (show_bytes, {  # in three digits
            0: "0 B", 0.25: "0.25 B", 999: "999 B", 9996: "10.0 kB", 1000: "1.00 kB", 999_999: "1.00 MB",
            3.42e12: "3.42 TB", 9.5e8: "950 MB", 45_600: "45.6 kB", 2**63: "9.22 EB", -1500: "-1.50 kB",
            1e308: "1e+290 EB"}),
        (show_share, {None: "\N{EN DASH}", 0.934: "93.4 %", 1000.0: "1e+05 %", 1e306: "1e+308 %"}),
        (show_rate, {None: "\N{EN DASH}", 0.4: "0", 1_250_000: "+1.25 MB/s", -300_000: "-300 kB/s"}),
        (show_time, {  # in two units
            None: "not at this rate", 0: "reached", 0.2: "in 1 s", 90: "in 1 min 30 s", 2 * HOUR: "in 2 h",
            3599.7: "in 1 h", 2 * DAY - 5: "in 2 d", 3 * DAY + 4 * HOUR: "in 3 d 4 h", 400 * DAY: "in over a year"}),
    ],
)  # fmt: skip
def test_a_value_is_shown_for_people(show: Callable[[Any], str], shown: dict[object, str]) -> None:
    assert {value: show(value) for value in shown} == shown
