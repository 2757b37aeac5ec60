"""The factor source ``fixed``: reports the factor of its property."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import ValidationError

from quotahost.broker.plugins.factor_sources.direct import Fixed
from quotahost.model import State
from tests.fakes.plugin_context import context


def settings(**properties: Any) -> Fixed.Section:
    return Fixed.Section.model_validate(properties)


def fixed(**properties: Any) -> Fixed:
    return Fixed(context(name="fixed", own=settings(**properties)))


@hypothesis_settings(deadline=None)
@given(st.floats(0, 1))
def test_the_factor_is_the_property_as_a_properties_file_spells_it(value: float) -> None:
    assert fixed(factor=repr(value)).read().value == value


def test_a_live_change_holds_from_the_next_read() -> None:
    source = fixed()
    states = [source.read().state]
    for factor in ("0.5", "0", "1"):
        source.reconfigure(settings(factor=factor))
        states.append(source.read().state)
    assert states == [State.OPEN, State.THROTTLE, State.PAUSE, State.OPEN]
    assert source.read().cause == "fixed by plugin.fixed.factor=1", "it names the property to change"


@pytest.mark.parametrize("value", ["-0.1", "1.1", "nan", "inf", "half", "", None])
def test_a_wrong_factor_is_refused_by_name(value: Any) -> None:
    with pytest.raises(ValidationError, match="factor"):
        settings(factor=value)
