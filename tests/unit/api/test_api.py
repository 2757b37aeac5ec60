"""The public API: a plugin's section is typed through its context, and a role says all there is to know of it."""

import importlib
import tomllib
from pathlib import Path
from typing import assert_type

import pytest
from pydantic import BaseModel

from quotahost.api import Context, Role
from quotahost.settings.broker import Settings
from tests.fakes.plugin_context import context

PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"


class Rates(BaseModel):
    produce: float


def helper(any_context: Context[object]) -> str:
    return any_context.name


def test_a_section_has_the_type_that_the_plugin_names() -> None:
    """mypy checks this test as well."""
    own: Context[Rates] = context(own=Rates(produce=1.0))
    assert_type(own.section, Rates)
    assert_type(own.settings, Settings)
    assert own.section.produce == 1.0
    plain: Context = context()
    assert_type(plain.section, None)
    assert [helper(own), helper(plain)] == ["mine", "mine"]


def test_each_role_has_its_entry_point_group_and_its_property() -> None:
    groups = tomllib.loads(PYPROJECT.read_text())["project"]["entry-points"]
    assert {role.group for role in Role} == set(groups)
    assert [role.broker_property for role in Role] == ["supplier", "factor.source", "policy", "tasks"]
    assert f"{Role.FACTOR_SOURCE}" == "factor source"


@pytest.mark.parametrize("name", ["api", "model", "units", "throttling", "testing"])
def test_a_public_package_states_what_is_public_and_says_that_it_is(name: str) -> None:
    package = importlib.import_module(f"quotahost.{name}")
    assert all(hasattr(package, each) for each in package.__all__)
    assert "Public" in (package.__doc__ or "")
