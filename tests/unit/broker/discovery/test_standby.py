"""The standby factor source, from ``factor.source.second`` to the plugin: when it is found, checked and built."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from quotahost.api import Context, Metrics, Role
from quotahost.api.context import no_disks
from quotahost.broker.discovery.build import configured
from quotahost.broker.discovery.entry_points import PluginError
from quotahost.broker.host.guard import Guard
from quotahost.broker.host.plugins.builder import Builder
from quotahost.broker.host.plugins.plugin_set import PluginSet
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX, SettingsError
from quotahost.testing.broker import FakeBroker
from tests.fakes.packages import distribute
from tests.fakes.plugin_context import context
from tests.fakes.shim import FakeShim

CODE = """
    from pydantic import BaseModel
    from quotahost.model import Factor

    BUILT = []

    class Source:
        def __init__(self, context):
            self.context = context
            BUILT.append(context)
        def read(self):
            return Factor(1.0)

    class Choosy(Source):
        class Section(BaseModel):
            share: float = 0.5
"""

IDLE = """
    class Idle:
        def __init__(self, context): pass
        def quota(self, client, quota_type): return None
"""


def settings(properties: Mapping[str, str]) -> Settings:
    return Settings.from_properties({PREFIX + name: text for name, text in properties.items()})


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Context]:
    entries = {"first": "sources:Source", "other": "sources:Choosy", "broken": "no_such_module:Source"}
    distribute(tmp_path, "acme", {Role.FACTOR_SOURCE.group: entries}, {"sources": CODE})
    distribute(tmp_path, "policies", {Role.SUPPLIER.group: {"idle": "idle:Idle"}}, {"idle": IDLE})
    monkeypatch.syspath_prepend(str(tmp_path))
    contexts: list[Context] = importlib.import_module("sources").BUILT
    contexts.clear()
    return contexts


def start(**more: str) -> PluginSet:
    given = {"supplier": "idle", "factor.source": "first", "policy": "", "factor.source.second": "other"}
    chosen = settings(given | {name.replace("_", "."): text for name, text in more.items()})
    builder = Builder(FakeBroker(), FakeBroker(), lambda *_: None, no_disks, Guard(FakeShim()))
    return builder.build(chosen, builder.validate(chosen), PluginSet(()))


def test_only_cluster_volumes_has_a_standby_by_default_and_it_is_snapshots() -> None:
    assert settings({"factor.source": "cluster-volumes"}).factor_source_second == "snapshots"
    assert settings({"factor.source": "snapshots"}).factor_source_second is None
    assert settings({}).factor_source_second is None


@pytest.mark.parametrize("text", ["none", " none ", ""])
def test_there_may_be_none(text: str) -> None:
    chosen = settings({"factor.source": "cluster-volumes", "factor.source.second": text})
    assert chosen.factor_source_second is None


@pytest.mark.parametrize(
    ("text", "words"), [("cluster-volumes", "can't stand in for itself"), ("a,b", "is not one entry point name")]
)
def test_what_can_not_be_a_standby_is_refused(text: str, words: str) -> None:
    with pytest.raises(SettingsError, match=f"factor.source.second.*{words}"):
        settings({"factor.source": "cluster-volumes", "factor.source.second": text})


def test_its_own_properties_are_those_of_a_configured_plugin_and_it_is_named_once() -> None:
    chosen = settings({"factor.source": "first", "factor.source.second": "other", "plugin.other.share": "0.1"})
    assert [each for each in configured(chosen) if each[0] == Role.FACTOR_SOURCE] == [
        (Role.FACTOR_SOURCE, "first"), (Role.FACTOR_SOURCE, "other"),
    ]  # fmt: skip
    same = settings({"factor.source": "first", "factor.source.second": "first"})
    assert [each for each in configured(same) if each[0] == Role.FACTOR_SOURCE] == [(Role.FACTOR_SOURCE, "first")]


def test_at_the_start_it_is_checked_and_not_built(built: list[Context]) -> None:
    made = start()
    assert [context.log.name for context in built] == ["quotahost.plugin.first"]
    source = made.factor_source()
    assert source is not None
    assert source[0] == "first"
    assert made.find(Role.FACTOR_SOURCE, "other") is None


@pytest.mark.parametrize(
    ("name", "words"),
    [("broken", "fails to import: ModuleNotFoundError"), ("oter", "there is none; did you mean 'other'")],
)
def test_one_that_can_not_be_had_stops_the_start_with_the_property_that_names_it(
    built: list[Context], name: str, words: str
) -> None:
    with pytest.raises(PluginError, match=rf"factor source '{name}': \S+factor.source.second names it: .*{words}"):
        start(factor_source_second=name)


def test_a_wrong_property_of_its_own_stops_the_start(built: list[Context]) -> None:
    with pytest.raises(SettingsError, match=r"plugin\.other\.share"):
        start(plugin_other_share="much")


def test_a_source_builds_it_by_name_with_the_settings_in_force_and_the_metrics_that_it_gives(
    built: list[Context],
) -> None:
    start()
    (first,) = built
    first.settings = settings({"factor.source": "first", "factor.source.second": "other", "plugin.other.share": "0.2"})
    metrics: Metrics = FakeBroker()
    other: Any = first.factor_source("other", metrics).context
    assert (other.name, other.section.share, other.metrics, other.settings) == ("other", 0.2, metrics, first.settings)
    assert other.open_disks is first.open_disks is no_disks, "one monitor serves both"


def test_without_a_host_there_is_none_to_be_built() -> None:
    with pytest.raises(LookupError, match="there is no factor source 'other' here"):
        context().factor_source("other", FakeBroker())
