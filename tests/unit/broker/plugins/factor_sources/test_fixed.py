"""The factor source ``fixed``: reports the factor of its property."""

import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import ValidationError

from quotahost.api import Context, QuotaFactorSource
from quotahost.broker.plugins.factor_sources.direct import Fixed
from quotahost.model import State
from quotahost.settings.broker import Settings
from quotahost.testing.broker import FakeBroker

NODE = FakeBroker()


def settings(**properties: Any) -> Fixed.Section:
    return Fixed.Section.model_validate(properties)


def fixed(**properties: Any) -> Fixed:
    context = Context(
        "fixed", settings(**properties), Settings(), 1, logging.getLogger("test"), broker=NODE, metrics=NODE
    )
    return Fixed(context)


def test_it_is_a_factor_source() -> None:
    source: QuotaFactorSource = fixed()
    assert isinstance(source, QuotaFactorSource)


def test_unset_it_is_open() -> None:
    assert fixed().read().state is State.OPEN


@hypothesis_settings(deadline=None)
@given(st.floats(0, 1))
def test_the_factor_is_the_property_as_a_properties_file_spells_it(value: float) -> None:
    assert fixed(factor=repr(value)).read().value == value


def test_the_reason_names_the_property_to_change() -> None:
    assert fixed(factor="0.25").read().cause == "fixed by plugin.fixed.factor=0.25"


def test_a_live_change_holds_from_the_next_read() -> None:
    source = fixed(factor="1")

    states = []
    for factor in ("0.5", "0", "1"):
        source.reconfigure(settings(factor=factor))
        states.append(source.read().state)

    assert states == [State.THROTTLE, State.PAUSE, State.OPEN]
    assert source.read().cause == "fixed by plugin.fixed.factor=1"


@pytest.mark.parametrize("value", ["-0.1", "1.1", "nan", "inf", "half", "", None])
def test_a_wrong_factor_is_refused_by_name(value: Any) -> None:
    with pytest.raises(ValidationError, match="factor"):
        settings(factor=value)


def test_an_unknown_property_is_refused_by_name() -> None:
    with pytest.raises(ValidationError, match="facter"):
        settings(facter="0.5")
