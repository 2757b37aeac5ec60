"""Properties that are understood: their values and defaults, and which of them can change live."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from pydantic import BaseModel, ValidationError

from quotahost.model import QuotaType, State
from quotahost.settings import strimzi as strimzi_names
from quotahost.settings.broker import Settings, live_properties
from quotahost.settings.declaration import PREFIX, SettingsError
from quotahost.settings.reader import REMOVED
from tests.unit.settings.properties import NAMES, read

LIVE = [
    "python.generation",
    "supplier",
    "supplier.combine",
    "static.produce",
    "static.fetch",
    "static.request",
    "static.controller-mutation",
    "static.scope",
    "static.storage.soft",
    "static.storage.soft.min-free-bytes",
    "static.storage.soft.min-free-percent",
    "static.storage.hard",
    "static.storage.hard.min-free-bytes",
    "static.storage.hard.min-free-percent",
    "static.storage.overrides",
    "factor.source",
    "factor.interval",
    "policy",
    "tasks",
    "volumes.period",
    "snapshots.period",
    "fenced.brokers",
    "static.excluded.principal.name.list",
    "exempt.principals",
    "newcomers.produce",
    "newcomers.fetch",
    "newcomers.request",
    "newcomers.controller-mutation",
    "topics.total.bytes.in.per.sec.threshold",
    "topics.bytes.in.per.sec.threshold",
    "topics.reject.error",
    "topics.spared",
    "fallback.action",
    "validity",
    "startup.grace",
    "floor.bytes",
    "max.mute",
    "pause.resume.free-share",
    "factor.quota.types",
    "factor.scope",
    "pause.creation",
    "mode",
    "shadow",
]


NOT_LIVE = [
    "class",
    "python.executable",
    "python.process",
    "clients.max",
    "clients.idle",
    "snapshots.topic",
    "cluster.volumes.topic",
    "usage.topic",
    "watch.topic",
    "looks.topic",
    "quotas.topic",
    "shares.topic",
    "fence.authorizer",
    "start.timeout",
    "metrics.clients",
    "metrics.port",
    "metrics.address",
]


def test_a_broker_without_properties_has_the_defaults() -> None:
    settings = Settings.from_properties({})

    assert settings.python_executable == "python3"
    assert settings.supplier == ("client-quotas", "static")
    assert (settings.factor_source, settings.policy, settings.tasks) == (None, None, ())
    assert settings.factor_interval == timedelta(milliseconds=250)
    static = settings.static
    assert (static.produce, static.fetch, static.request, static.controller_mutation) == (None,) * 4
    assert static.scope == "broker", "a total, as with Strimzi's plugin"
    assert settings.excluded_principals == ()
    newcomers = settings.newcomers
    assert (newcomers.produce, newcomers.fetch) == (100_000_000, 100_000_000)
    assert (newcomers.request, newcomers.controller_mutation) == (200, 100)
    assert settings.clients_max == 50_000
    assert settings.clients_idle == timedelta(hours=1)
    assert settings.validity == settings.startup_grace == timedelta(minutes=1)
    assert settings.start_timeout == timedelta(seconds=30)
    assert settings.floor_bytes == 35_000
    assert settings.factor_quota_types == (QuotaType.PRODUCE,)
    assert settings.mode == "enforce"
    assert (settings.metrics_port, settings.metrics_address) == (None, "127.0.0.1")
    assert (settings.kafka, settings.plugin) == ({}, {})


def test_properties_are_understood_with_their_units() -> None:
    settings = Settings.from_properties(
        {
            f"{PREFIX}class": "org.quotahost.PythonQuotaCallback",
            f"{PREFIX}supplier": " mine , static ",
            f"{PREFIX}tasks": "one,two",
            f"{PREFIX}static.produce": "10M",
            f"{PREFIX}static.request": "150%",
            f"{PREFIX}static.controller-mutation": "0.5",
            f"{PREFIX}static.scope": "client-id",
            f"{PREFIX}newcomers.fetch": "unlimited",
            f"{PREFIX}validity": "PT5M",
            f"{PREFIX}factor.quota.types": "PRODUCE,controller-mutation",
            f"{PREFIX}mode": "SHADOW",
            f"{PREFIX}metrics.port": "9404",
            f"{PREFIX}kafka.sasl.password": "hunter2",
            f"{PREFIX}plugin.mine.off-peak.hours": "22-6",
            "log.dirs": "/not/ours",
        }
    )

    assert settings.supplier == ("mine", "static")
    assert settings.tasks == ("one", "two")
    static = settings.static
    assert (static.produce, static.request, static.controller_mutation) == (10_000_000, 150, 0.5)
    assert static.scope == "client-id"
    assert settings.newcomers.fetch is None
    assert settings.validity == timedelta(minutes=5)
    assert settings.factor_quota_types == (QuotaType.PRODUCE, QuotaType.CONTROLLER_MUTATION)
    assert settings.mode == "shadow"
    assert settings.metrics_port == 9404
    assert settings.kafka["sasl.password"].get_secret_value() == "hunter2"
    assert settings.plugin == {"mine": {"off-peak.hours": "22-6"}}


def test_properties_outside_the_prefix_are_ignored() -> None:
    assert Settings.from_properties({"client.quota.callback": "x", "mode": "x"}) == Settings.from_properties({})


def test_settings_cannot_be_changed() -> None:
    settings = Settings.from_properties({})
    with pytest.raises(ValidationError):
        settings.mode = "shadow"


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, State.OPEN),
        ({"factor_source": "volumes"}, State.PAUSE),
        ({"factor_source": ""}, State.OPEN),
        ({"factor_source": "volumes", "fallback_action": "open"}, State.OPEN),
        ({"fallback_action": "PAUSE"}, State.PAUSE),
    ],
)
def test_unknown_disks_pause_only_where_a_factor_source_looks_at_them(
    properties: dict[str, str], expected: State
) -> None:
    assert read(**properties).fallback_action is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("User:a;User:CN=b,OU=c", ("a", "CN=b,OU=c")),
        ("a; User: b ;;a", ("a", "b")),
        ("User:spiffe://x/y", ("spiffe://x/y",)),
        ("", ()),
    ],
)
def test_excluded_principals_are_written_as_for_strimzi_or_without_user(text: str, expected: tuple[str, ...]) -> None:
    assert read(static_excluded_principal_name_list=text).excluded_principals == expected
    assert Settings.from_properties({PREFIX + "exempt.principals": text}).excluded_principals == expected


def test_principals_of_both_properties_are_excluded() -> None:
    both = {"static.excluded.principal.name.list": "User:a;User:b", "exempt.principals": "User:b;User:CN=c,O=d"}
    settings = Settings.from_properties({PREFIX + name: text for name, text in both.items()})
    assert set(settings.excluded_principals) == {"a", "b", "CN=c,O=d"}


def test_only_what_can_change_live_is_listed_as_live() -> None:
    live = live_properties(Settings.from_properties({}))
    assert live == [PREFIX + name for name in LIVE] + strimzi_names.live_names()
    assert sorted(LIVE + NOT_LIVE) == sorted(NAMES)


def test_the_declared_properties_of_configured_plugins_are_live() -> None:
    class Mine(BaseModel):
        off_peak: str = ""
        rate: int = 1

    settings = read(supplier="mine,static", tasks="mine")
    live = live_properties(settings, {"mine": Mine, "static": None})
    assert live[len(LIVE) :][:2] == [f"{PREFIX}plugin.mine.off-peak", f"{PREFIX}plugin.mine.rate"]


@pytest.mark.parametrize(
    ("one", "other"), [("snapshots", "usage"), ("usage", "shares"), ("cluster.volumes", "snapshots")]
)
def test_two_kinds_of_records_have_two_topics(one: str, other: str) -> None:
    with pytest.raises(SettingsError, match="both name the topic t; give each one of its own") as error:
        Settings.from_properties({f"{PREFIX}{one}.topic": "t", f"{PREFIX}{other}.topic": "t"})
    assert f"{one}.topic" in str(error.value)
    assert f"{other}.topic" in str(error.value)


@pytest.mark.parametrize("reader", [{"factor_source": "snapshots"}, {"tasks": "publish-volumes"}])
def test_a_period_of_snapshots_above_half_of_validity_is_refused_with_what_would_be_right(
    reader: dict[str, str],
) -> None:
    with pytest.raises(SettingsError) as caught:
        read(**reader, snapshots_period="31s", validity="1m")
    assert str(caught.value) == (
        f"{PREFIX}snapshots.period: 31 s is more than half of validity (60 s), so that a cluster at rest would take "
        f"its own brokers for silent; set at most 30 s, or {PREFIX}validity to at least 62 s"
    )
    assert read(**reader, snapshots_period="30s", validity="1m").snapshots_period == timedelta(seconds=30)


def test_the_period_of_snapshots_is_of_no_concern_where_none_are_published_or_read() -> None:
    assert read(factor_source="local", validity="1s").snapshots_period == timedelta(seconds=5)


@pytest.mark.parametrize("name", [*REMOVED])
def test_a_property_that_is_gone_is_an_error_that_says_what_to_do(name: str) -> None:
    with pytest.raises(
        SettingsError, match=rf"^{re.escape(PREFIX + name)}: no longer exists: .*(remove it|write that)"
    ) as caught:
        Settings.from_properties({PREFIX + name: "secret"})
    assert "secret" not in str(caught.value)
    assert caught.value.problems[0].unknown, "one that Kafka has stored stops no start"
