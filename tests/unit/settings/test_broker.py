from __future__ import annotations

import traceback
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr, ValidationError

from quotahost.model import QuotaType, State
from quotahost.settings.broker import Settings, describe, live_properties, properties_table
from quotahost.settings.declaration import PREFIX, SettingsError, declared
from quotahost.settings.strimzi import names as strimzi_names
from quotahost.text import printable

NAMES = [p.name for p in declared(Settings) if not p.is_family]
LIVE = [
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
    "factor.source.second",
    "factor.interval",
    "policy",
    "tasks",
    "volumes.period",
    "snapshots.period",
    "usage.period",
    "usage.clients",
    "snapshots.expiry",
    "static.excluded.principal.name.list",
    "newcomers.produce",
    "newcomers.fetch",
    "newcomers.request",
    "newcomers.controller-mutation",
    "topics.total.bytes.in.per.sec.threshold",
    "topics.bytes.in.per.sec.threshold",
    "topics.reject.error",
    "fallback.action",
    "validity",
    "startup.grace",
    "floor.bytes",
    "max.mute",
    "factor.quota.types",
    "mode",
]
NOT_LIVE = [
    "class",
    "python.executable",
    "clients.max",
    "clients.idle",
    "inbox.max",
    "snapshots.topic",
    "cluster.volumes.topic",
    "usage.topic",
    "shares.topic",
    "fence.authorizer",
    "start.timeout",
    "metrics.port",
    "metrics.address",
]


def read(**properties: str) -> Settings:
    """Settings of short names, written with ``_`` for ``.``."""
    return Settings.from_properties(
        {PREFIX + name.replace("_", "."): text for name, text in properties.items()}
    )


def refused(properties: dict[str, str]) -> str:
    with pytest.raises(SettingsError) as error:
        Settings.from_properties({PREFIX + name: text for name, text in properties.items()})
    return str(error.value)


def test_a_broker_that_says_nothing_has_the_defaults() -> None:
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
    assert (settings.clients_max, settings.inbox_max) == (50_000, 65_536)
    assert settings.clients_idle == timedelta(hours=1)
    assert settings.validity == settings.startup_grace == timedelta(minutes=1)
    assert settings.start_timeout == timedelta(seconds=30)
    assert settings.floor_bytes == 35_000
    assert settings.factor_quota_types == (QuotaType.PRODUCE,)
    assert settings.mode == "enforce"
    assert (settings.metrics_port, settings.metrics_address) == (None, "127.0.0.1")
    assert (settings.kafka, settings.plugin) == ({}, {})


def test_what_a_broker_says_is_understood_with_its_units() -> None:
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
    assert Settings.from_properties({"client.quota.callback": "x", "mode": "x"}) == Settings.from_properties(
        {}
    )


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
def test_excluded_principals_are_written_as_for_strimzi_or_without_user(
    text: str, expected: tuple[str, ...]
) -> None:
    assert read(static_excluded_principal_name_list=text).excluded_principals == expected


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("Group:a", "write User:Group:a"),
        ("user:a", "write User:user:a"),
        ("User:", "write User:name"),
        ("User:*", "list each principal"),
    ],
)
def test_other_principals_are_refused(text: str, remedy: str) -> None:
    assert remedy in refused({"static.excluded.principal.name.list": text})


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("supplier", "", "name at least one supplier"),
        ("supplier", "a,,b", "empty name"),
        ("supplier", "a,b,a", "'a' twice; remove one"),
        ("tasks", "a b", "write letters, digits"),
        ("factor.source", "a,b", "is not one entry point name"),
        ("policy", "a.b", "is not one entry point name"),
        ("static.produce", "10MB", "unknown unit 'MB'"),
        ("static.produce", "0", "above 0"),
        ("static.produce", "", "or unlimited"),
        ("static.scope", "clientid", "did you mean client-id?"),
        ("newcomers.request", "lots", "is not a number"),
        ("clients.max", "1.5", "whole number"),
        ("clients.idle", "3600", "write 3600s for seconds"),
        ("fallback.action", "CLOSE", "none of PAUSE, OPEN"),
        ("factor.quota.types", "PRODUCE,PRODUCE", "twice"),
        ("factor.quota.types", "", "name at least one quota type"),
        ("factor.quota.types", "PRODUCER", "did you mean PRODUCE?"),
        ("mode", "shadows", "did you mean shadow?"),
        ("metrics.port", "70000", "from 1 to 65535"),
        ("metrics.address", " ", "remove the line"),
        ("python.executable", "", "remove the line"),
    ],
)
def test_a_wrong_value_is_told_with_property_value_and_remedy(name: str, text: str, words: str) -> None:
    message = refused({name: text})
    assert message.startswith(f"{PREFIX}{name}={printable(text)}: ")
    assert words in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("static.produc", "static.produce"),
        ("factor.sorce", "factor.source"),
        ("suppliers", "supplier"),
        ("newcomers.controller.mutation", "newcomers.controller-mutation"),
        ("kafak.bootstrap.servers", "kafka.bootstrap.servers"),
        ("plugins.static.x", "plugin.static.x"),
    ],
)
def test_an_unknown_property_is_told_with_its_nearest_match(name: str, like: str) -> None:
    assert refused({name: "1"}) == f"{PREFIX}{name}: unknown property; did you mean {PREFIX}{like}?"


def test_an_unknown_property_that_is_like_no_other_is_told_where_all_are_listed() -> None:
    assert "`quotahost properties` lists all" in refused({"xyzzy": "1"})


@pytest.mark.parametrize("name", ["kafka", "kafka.", "plugin", "plugin.", "plugin.static", "plugin.static."])
def test_a_family_without_the_rest_of_its_name_is_refused(name: str) -> None:
    assert f"{PREFIX}{name}: is incomplete; write {PREFIX}" in refused({name: "x"})


def test_properties_of_a_plugin_that_is_not_configured_are_refused_with_the_nearest_name() -> None:
    message = refused({"supplier": "mine", "plugin.mien.a": "1", "plugin.mien.b": "1"})
    assert message == (
        f"{PREFIX}plugin.mien.*: no configured plugin is named 'mien'; did you mean {PREFIX}plugin.mine.*?"
    )
    assert "(now: mine)" in refused({"supplier": "mine", "plugin.zzz.a": "1"})


def test_all_problems_are_told_at_once_and_nothing_but_them() -> None:
    message = refused(
        {"static.produce": "x", "validity": "30", "nonsense": "1", "plugin.x": "1", "mode": "shadow"}
    )
    lines = message.splitlines()
    assert lines[0] == "4 problems:"
    for name in ("static.produce", "validity", "nonsense", "plugin.x"):
        assert sum(f"- {PREFIX}{name}" in line for line in lines) == 1, name


def test_a_value_that_would_break_the_log_line_is_escaped() -> None:
    message = refused({"mode": "x\nERROR forged line", "odd\nname": "1"})
    assert "x\\nERROR forged line" in message
    assert "odd\\nname" in message
    assert "\nERROR" not in message


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


def test_settings_are_described_in_full_with_where_they_come_from() -> None:
    rows = {row.property: row for row in describe(read(static_produce="10M", validity="PT5M"))}

    produce = rows[f"{PREFIX}static.produce"]
    assert (produce.value, produce.where) == ("10,000,000 bytes/s (10M)", "broker properties")
    assert rows[f"{PREFIX}validity"].value == "300 s"
    idle = rows[f"{PREFIX}clients.idle"]
    assert (idle.value, idle.where) == ("3,600 s (1h)", "default")
    assert rows[f"{PREFIX}newcomers.request"].value == "200 %"
    assert rows[f"{PREFIX}static.fetch"].value == "unlimited"
    assert "factor.source" in rows[f"{PREFIX}fallback.action"].where
    assert list(rows) == [PREFIX + name for name in NAMES]


def test_secrets_are_described_as_stars_by_name_or_by_the_plugin_s_own_model() -> None:
    class Mine(BaseModel):
        open_sesame: SecretStr | None = None
        hour: str = ""

    properties = {
        "supplier": "mine",
        "kafka.bootstrap.servers": "SECRET-1",
        "plugin.mine.api-token": "SECRET-2",
        "plugin.mine.open-sesame": "SECRET-3",
        "plugin.mine.hour": "22",
    }
    settings = Settings.from_properties({PREFIX + name: text for name, text in properties.items()})
    values = {row.property.removeprefix(PREFIX): row.value for row in describe(settings, {"mine": Mine})}

    assert values["kafka.bootstrap.servers"] == "***"
    assert values["plugin.mine.api-token"] == "***"
    assert values["plugin.mine.open-sesame"] == "***"
    assert values["plugin.mine.hour"] == "22"
    assert "SECRET" not in repr(settings) + str(settings)


def test_the_table_has_every_property_once() -> None:
    lines = properties_table().splitlines()
    families = ["kafka.*", "static.kafka.admin.*", "plugin.NAME.*"]
    assert [line.split("`")[1] for line in lines[2:]] == [*NAMES, *families]
    assert "| `newcomers.produce` | `100M` | bytes/s | yes |" in properties_table()
    assert "| `inbox.max` | `65536` | count | no |" in properties_table()
    assert all(declaration.doc for declaration in declared(Settings))


def test_every_default_of_the_table_means_what_leaving_the_property_out_means() -> None:
    written = {p.name: p.default for p in declared(Settings) if p.default and " " not in p.default}
    written.pop("metrics.port")  # "off" is a word for none
    assert Settings.from_properties({PREFIX + name: text for name, text in written.items()}) == (
        Settings.from_properties({})
    )


TEXTS = st.sampled_from(
    [
        "",
        "1",
        "10M",
        "30s",
        "PT1M",
        "unlimited",
        "a,b",
        "a,a",
        "PAUSE",
        "User:a;b",
        "shadow",
        "client",
        "9404",
        "nan",
    ]
) | st.text(max_size=20)
TAILS = st.text(max_size=8) | st.sampled_from(["x.y", "static.rate", "sasl.password"])
ANY_NAME = (
    st.sampled_from(NAMES)
    | st.builds(lambda name, tail: name + tail, st.sampled_from(NAMES), TAILS)
    | st.builds(
        lambda family, tail: family + tail, st.sampled_from(["kafka.", "plugin.", "kafka", "plugin"]), TAILS
    )
    | st.text(max_size=20)
)


@given(st.dictionaries(ANY_NAME, TEXTS, max_size=8))
def test_any_properties_are_understood_or_refused_by_name(properties: dict[str, str]) -> None:
    told = {PREFIX + name: text for name, text in properties.items()}
    sections = {f"{PREFIX}plugin.{name.split('.')[1]}.*" for name in properties if name.startswith("plugin.")}
    try:
        understood = {row.property for row in describe(Settings.from_properties(told))}
    except SettingsError as refusal:
        error = refusal
    else:
        assert understood >= set(told)
        return
    for problem in error.problems:
        assert problem.property in set(told) | sections
        assert printable(problem.property) in str(error)


SECRET = "S3CR3T-hunter2"


SECRETS = {"kafka.sasl.password": SECRET, "kafka.bootstrap.servers": SECRET, "plugin.mine.password": SECRET}


@given(
    properties=st.dictionaries(ANY_NAME, TEXTS, max_size=5),
    supplier=st.sampled_from(["mine", "static"]),
    misspelt=st.sampled_from([{}, {"kafak.sasl.jaas.config": SECRET}]),
)
def test_no_error_or_description_tells_a_secret(
    properties: dict[str, str], supplier: str, misspelt: dict[str, str]
) -> None:
    told = {**properties, **SECRETS, **misspelt, "supplier": supplier}
    try:
        settings = Settings.from_properties({PREFIX + name: text for name, text in told.items()})
    except SettingsError:
        shown = traceback.format_exc()
    else:
        shown = f"{settings!r} {settings} {describe(settings)}"
    assert SECRET not in shown
