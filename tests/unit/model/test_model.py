"""The value types: what they accept, what they refuse, and the codes that Java relies on."""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quotahost.model import QUOTA_TYPES, UNLIMITED, Factor, Quota, QuotaType, Scope, ScopeKind, State


def test_quota_types_come_in_kafkas_order_and_names() -> None:
    assert [str(quota_type) for quota_type in QUOTA_TYPES] == ["PRODUCE", "FETCH", "REQUEST", "CONTROLLER_MUTATION"]
    assert QuotaType("CONTROLLER_MUTATION") is QUOTA_TYPES[-1]


def test_scope_codes_are_those_that_java_knows() -> None:
    codes = {kind.name: kind.value for kind in ScopeKind}
    assert codes == {"CLIENT": 0, "USER": 1, "CLIENT_ID": 2, "BROKER": 3, "GROUP": 4}


@pytest.mark.parametrize("rate", [5e-324, 1, 0.5, 2**63, 1e308, None])
def test_quota_takes_any_finite_rate_above_0_or_none_and_a_client_has_it_to_itself(rate: float | None) -> None:
    assert (Quota(rate).rate, Quota(rate).scope, Quota(rate) == UNLIMITED) == (rate, Scope.CLIENT, rate is None)


@pytest.mark.parametrize(
    ("make", "values", "words"),
    [
        (Quota, [0, 0.0, -0.0, -1, -1e-300, math.nan, math.inf, -math.inf], "must be finite and above 0"),
        (Quota, ["10", b"10", True, False, [10], Decimal(10), 1j, object()], "must be a number or None"),
        (Scope.group, ["", None], "non-empty name"),
        (Factor, [-0.01, 1.01, math.nan, math.inf, -math.inf, "0.5", None, True, False], r"number from 0\.0 to 1\.0"),
    ],
    ids=["a rate by which Kafka does not throttle", "no rate", "a group", "a factor"],
)
def test_a_wrong_value_is_refused(make: Callable[[Any], object], values: list[Any], words: str) -> None:
    for value in values:
        with pytest.raises(ValueError, match=words):
            make(value)


@settings(deadline=None)
@given(st.floats(0, 1))
def test_factor_state_follows_from_its_value(value: float) -> None:
    expected = {0.0: State.PAUSE, 1.0: State.OPEN}.get(value, State.THROTTLE)
    assert Factor(value).state is expected
