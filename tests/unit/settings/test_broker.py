"""Tests accepted properties: values, defaults, live changes, rules in shadow, and how doctor shows properties."""

import re
from datetime import timedelta
from operator import attrgetter

import pytest
from pydantic import BaseModel

from quotahost.model import QuotaType, State
from quotahost.settings.broker import REMOVED, Settings, as_started, asked_properties, describe, properties_table
from quotahost.settings.declaration import PREFIX, SettingsError, declared
from quotahost.settings.types import EVERYTHING, Shadow
from tests.unit.settings.properties import BYTES, FALLBACK, INTERVAL, NAMES, RATIO, VALIDITY, full, read, refused

#: A change of these properties needs a restart.
STATIC = {
    "class", "python.executable", "python.process", "clients.max", "clients.idle", "topics.prefix", "fence.authorizer",
    "metrics.clients", "metrics.port",
}  # fmt: skip

PRINCIPALS = "static.excluded.principal.name.list"
RULES = Shadow(factor=True, topics=frozenset({"Orders.eu-1"}), suppliers=frozenset({"static"}))


@pytest.mark.parametrize(
    ("given", "attribute", "value"),
    [
        *(({name: text}, name.replace("-", "_"), value) for name, text, value in (
            ("supplier", " mine , static ", ("mine", "static")), ("tasks", "one,two", ("one", "two")),
            ("static.produce", "10M", 10_000_000), ("static.request", "150%", 150),
            ("static.controller-mutation", "0.5", 0.5), ("static.scope", "client-id", "client-id"),
            ("newcomers.fetch", "unlimited", None), ("validity", "PT5M", timedelta(minutes=5)))),
        ({"factor.quota.types": "PRODUCE,controller-mutation"}, "factor_quota_types",
         (QuotaType.PRODUCE, QuotaType.CONTROLLER_MUTATION)),
        ({"supplier.combine": "most_constraining"}, "supplier_combine", "most-constraining"),
        ({PRINCIPALS: "User:a;User:b", "exempt.principals": "User:CN=c"}, "excluded_principals",
         ("a", "b", "CN=c")),
        ({"supplier": "mine", "plugin.mine.off-peak.hours": "22-6"}, "plugin", {"mine": {"off-peak.hours": "22-6"}}),
        # Unknown disks cause a PAUSE only if a source looks at disks.
        *((given, "fallback_action", action) for given, action in (
            ({}, State.OPEN), ({"factor.source": "volumes"}, State.PAUSE), ({"factor.source": ""}, State.OPEN),
            ({"factor.source": "load"}, State.OPEN), ({"factor.source": "volumes,load"}, State.PAUSE),
            ({"factor.source": "volumes", "fallback.action": "open"}, State.OPEN),
            ({"fallback.action": "PAUSE"}, State.PAUSE))),
        # Excluded principals are written as for Strimzi, or without "User:".
        *(({name: text}, "excluded_principals", value) for name in (PRINCIPALS, "exempt.principals")
          for text, value in (("User:a;User:CN=b,OU=c", ("a", "CN=b,OU=c")), ("a; User: b ;;a", ("a", "b")),
                              ("User:spiffe://x/y", ("spiffe://x/y",)), ("", ()))),
        # Metrics are served on loopback unless an address is named.
        *(({"metrics.port": text}, "metrics_endpoint", endpoint) for text, endpoint in (
            ("9404", ("127.0.0.1", 9404)), ("0.0.0.0:9404", ("0.0.0.0", 9404)), ("[::1]:9404", ("::1", 9404)),
            ("", None))),
        # Rules in shadow are taken in any order and case, and topics may have dots.
        *((given, "shadow", value) for given, value in (
            ({"shadow": "topic.Orders.eu-1, FACTOR,supplier.static"}, RULES), ({}, Shadow()),
            ({"shadow": "topics"}, Shadow(all_topics=True)), ({"shadow": "supplier.static, ALL"}, EVERYTHING))),
    ],
)  # fmt: skip
def test_what_is_written_means_this(given: dict[str, str], attribute: str, value: object) -> None:
    others = {"client.quota.callback": "outside the prefix", "log.dirs": "/not/ours"}
    assert attrgetter(attribute)(Settings.from_properties(full(given) | others)) == value
    assert RULES.names() == ["factor", "topic.Orders.eu-1", "supplier.static"]


def test_what_is_not_live_stays_as_it_was_at_the_start_and_each_that_would_change_is_named() -> None:
    started = dict.fromkeys((*STATIC, "kafka.sasl.password", "static.produce"), "of the file")
    given = dict.fromkeys((*NAMES, "kafka.sasl.password", "kafka.ssl.key", "static.kafka.admin.x"), "stored")
    kept, problems = as_started(full(given), full(started))
    fixed = [*STATIC, "kafka.sasl.password"]
    assert kept == full({**dict.fromkeys(NAMES, "stored"), **dict.fromkeys(fixed, "of the file")})
    changed = (*fixed, "kafka.ssl.key", "static.kafka.admin.x")
    assert [p.property for p in problems] == sorted(PREFIX + name for name in changed)
    assert as_started(full(started), full(started)) == (full(started), [])


def test_kafka_has_to_ask_about_all_properties_also_about_what_configured_plugins_declare() -> None:
    strimzis = (BYTES, RATIO, INTERVAL, FALLBACK, VALIDITY)
    own = [name for name in NAMES if name != "class"]
    assert asked_properties(read()) == [PREFIX + name for name in (*own, *strimzis)]
    family = {"kafka.ssl.key": "a", "static.kafka.admin.x": "b"}
    assert asked_properties(read(family))[len(own) :][:2] == [*full(family)]

    class Mine(BaseModel):
        off_peak: str = ""
        rate: int = 1

    asked = asked_properties(read(supplier="mine,static", tasks="mine"), {"mine": Mine, "static": None})
    assert asked[len(own) :][:2] == [f"{PREFIX}plugin.mine.off-peak", f"{PREFIX}plugin.mine.rate"]


@pytest.mark.parametrize(
    ("period", "reader"),
    [("snapshots", {"factor.source": "snapshots"}), ("snapshots", {"tasks": "publish-volumes"}),
     ("volumes", {"factor.source": "local"}), ("volumes", {"factor.source": "snapshots"})],
)  # fmt: skip
def test_a_period_above_half_of_validity_is_refused(period: str, reader: dict[str, str]) -> None:
    reader |= {"validity": "1m"}
    message = refused(reader | {f"{period}.period": "31s"})
    assert message.startswith(f"{PREFIX}{period}.period: 31 s is more than half of validity (60 s), so that ")
    assert getattr(read(reader | {f"{period}.period": "30s"}), f"{period}_period") == timedelta(seconds=30)
    # The period may be longer if nothing waits for its results.
    assert read(factor_source="local", validity="1s").snapshots_period == timedelta(seconds=5)
    assert read(volumes_period="2m").volumes_period == timedelta(minutes=2)


@pytest.mark.parametrize("name", [*REMOVED])
def test_a_property_that_is_gone_is_an_error_that_says_what_to_do(name: str) -> None:
    gone = rf"^{re.escape(PREFIX + name)}: no longer exists: .*(remove it|use that name)"
    with pytest.raises(SettingsError, match=gone) as caught:
        read({name: "secret"})
    assert "secret" not in str(caught.value)
    assert caught.value.problems[0].unknown, "a stored property that is gone doesn't stop the start"


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("username", "me:hunter2", "me:***"),
        ("url", "http://me:hunter2@host:9090", "http://***@host:9090"),
        ("url", "me:hunter2@host:9090", "***@host:9090"),
        ("url", 200_000 * "http://", 200_000 * "http://"),  # it took minutes before
        ("capacity", "size:max:5m{a='b'} @ 1700000000", "size:max:5m{a='b'} @ 1700000000"),
    ],
)
def test_a_password_in_a_wrong_place_is_described_as_stars(name: str, text: str, shown: str) -> None:
    settings = read({"factor.source": "prometheus", f"plugin.prometheus.{name}": text})
    values = {row.property.removeprefix(PREFIX): row.value for row in describe(settings)}
    assert values[f"plugin.prometheus.{name}"] == shown


def test_the_table_has_every_property_once_and_its_defaults_mean_what_leaving_them_out_means() -> None:
    families = ["kafka.*", "static.kafka.admin.*", "plugin.NAME.*"]
    assert [line.split("`")[1] for line in properties_table().splitlines()[2:]] == [*NAMES, *families]
    assert all(declaration.doc for declaration in declared(Settings))
    written = {PREFIX + p.name: p.default for p in declared(Settings) if p.default and " " not in p.default}
    assert Settings.from_properties(written) == read()
