"""Properties that are understood: values, defaults, what is live, what is in shadow, and how doctor shows them."""

import random
import re
from datetime import timedelta
from operator import attrgetter

import pytest
from pydantic import BaseModel, SecretStr

from quotahost.model import Limit, LimitType, QuotaType, State
from quotahost.records.topics import TOPICS
from quotahost.settings.broker import REMOVED, Settings, as_started, asked_properties, describe, properties_table
from quotahost.settings.declaration import PREFIX, SettingsError, declared
from quotahost.settings.rate_lists import parse_rates
from quotahost.settings.storage import Override
from quotahost.settings.types import EVERYTHING, Shadow
from tests.unit.settings.properties import BYTES, FALLBACK, INTERVAL, NAMES, RATIO, VALIDITY, full, read, refused, shown

#: A change of these needs a restart.
STATIC = {
    "class", "python.executable", "python.process", "clients.max", "clients.idle", "topics.prefix", "fence.authorizer",
    "metrics.clients", "metrics.port",
}  # fmt: skip

PRINCIPALS = "static.excluded.principal.name.list"
USED, FREE, PERCENT = LimitType
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
        *(({name: text}, name, value) for name, text, value in (
            ("static.fetch", "2.0E6", 2_000_000), ("static.request", "200.0", 200))),  # as for Strimzi
        ({"static.produce": "1000000"}, "static.scope", "broker"),
        ({"supplier": "mine", "plugin.mine.off-peak.hours": "22-6"}, "plugin", {"mine": {"off-peak.hours": "22-6"}}),
        # Disks that are unknown pause only where a source looks at them.
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
        # Each entry of the overrides is a volume and its limits.
        *(({"static.storage.overrides": text}, "static.storage.overrides", overrides) for text, overrides in (
            ("/dev/sdb hard.min-free-bytes=10G soft.min-free-percent=0.1; /data/2 hard=5T soft.min-free-bytes=9",
             (Override("/dev/sdb", Limit(PERCENT, 10), Limit(FREE, 10**10)),
              Override("/data/2", Limit(FREE, 9), Limit(USED, 5 * 10**12)))),
            (" /a  soft=1Ki ;; ", (Override("/a", soft=Limit(USED, 1024)),)),
            ("/my disk/x hard=5", (Override("/my disk/x", hard=Limit(USED, 5)),)),
            ("/a hard.min-free-percent=5%", (Override("/a", hard=Limit(PERCENT, 5)),)), ("", ()))),
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
    own = [name for name in NAMES if name != "class"]
    assert asked_properties(read()) == [PREFIX + name for name in (*own, BYTES, RATIO, INTERVAL, FALLBACK, VALIDITY)]
    family = {"kafka.ssl.key": "a", "static.kafka.admin.x": "b"}
    assert asked_properties(read(family))[len(own) :][:2] == [*full(family)]

    class Mine(BaseModel):
        off_peak: str = ""
        rate: int = 1

    asked = asked_properties(read(supplier="mine,static", tasks="mine"), {"mine": Mine, "static": None})
    assert asked[len(own) :][:2] == [f"{PREFIX}plugin.mine.off-peak", f"{PREFIX}plugin.mine.rate"]


def test_one_prefix_names_all_topics_of_quotahost() -> None:
    settings = read(topics_prefix="eu.quota-")
    names = {settings.snapshots_topic, settings.cluster_volumes_topic, settings.usage_topic, settings.shares_topic,
             settings.quotas_topic, settings.watch_topic, settings.looks_topic}  # fmt: skip
    assert names == {f"eu.quota-{each}" for each in (
        "snapshots", "cluster_volumes", "usage", "shares", "quotas", "watch", "looks")}  # fmt: skip
    assert names < set(settings.record_topics)
    assert {"__quotahost_snapshots", "__quotahost_usage"} < set(read().record_topics)


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


def test_a_period_is_of_no_concern_where_nobody_waits_for_what_it_brings() -> None:
    assert read(factor_source="local", validity="1s").snapshots_period == timedelta(seconds=5)
    assert read(volumes_period="2m").volumes_period == timedelta(minutes=2)


@pytest.mark.parametrize("name", [*REMOVED])
def test_a_property_that_is_gone_is_an_error_that_says_what_to_do(name: str) -> None:
    gone = rf"^{re.escape(PREFIX + name)}: no longer exists: .*(remove it|write that)"
    with pytest.raises(SettingsError, match=gone) as caught:
        read({name: "secret"})
    assert "secret" not in str(caught.value)
    assert caught.value.problems[0].unknown, "one that Kafka has stored stops no start"


def test_settings_are_described_in_full_with_where_they_come_from() -> None:
    settings = read(static_produce="10M", validity="PT5M")
    assert list(shown(settings)) == NAMES
    assert shown(settings) | {
        "static.produce": "10,000,000 bytes/s (10M)", "validity": "300 s", "clients.idle": "3,600 s (1h)",
        "newcomers.request": "200 %", "static.fetch": "unlimited",
    } == shown(settings)  # fmt: skip
    where = {row.property.removeprefix(PREFIX): row.where for row in describe(settings)}
    assert (where["static.produce"], where["clients.idle"]) == ("broker properties", "default")
    assert "factor.source" in where["fallback.action"]


def test_secrets_are_described_as_stars_by_name_or_by_the_plugin_s_own_model() -> None:
    class Mine(BaseModel):
        open_sesame: SecretStr | None = None
        hour: str = ""

    secrets = ("kafka.bootstrap.servers", "plugin.mine.api-token", "plugin.mine.open-sesame")
    settings = read(dict.fromkeys(secrets, "SECRET") | {"supplier": "mine", "plugin.mine.hour": "22"})
    values = {row.property.removeprefix(PREFIX): row.value for row in describe(settings, {"mine": Mine})}
    assert {name: values[name] for name in secrets} == dict.fromkeys(secrets, "***")
    assert values["plugin.mine.hour"] == "22"
    assert "SECRET" not in repr(settings) + str(settings)


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("username", "me:hunter2", "me:***"),
        ("url", "http://me:hunter2@host:9090", "http://***@host:9090"),
        ("url", "me:hunter2@host:9090", "***@host:9090"),
        ("capacity", "size:max:5m{a='b'} @ 1700000000", "size:max:5m{a='b'} @ 1700000000"),
    ],
)
def test_a_password_in_a_wrong_place_is_described_as_stars(name: str, text: str, told: str) -> None:
    settings = read({"factor.source": "prometheus", f"plugin.prometheus.{name}": text})
    assert shown(settings)[f"plugin.prometheus.{name}"] == told


def test_the_table_has_every_property_once_and_its_defaults_mean_what_leaving_them_out_means() -> None:
    families = ["kafka.*", "static.kafka.admin.*", "plugin.NAME.*"]
    assert [line.split("`")[1] for line in properties_table().splitlines()[2:]] == [*NAMES, *families]
    assert all(declaration.doc for declaration in declared(Settings))
    written = {PREFIX + p.name: p.default for p in declared(Settings) if p.default and " " not in p.default}
    written.pop(PREFIX + "metrics.port")  # "off" is a word for none
    assert Settings.from_properties(written) == read()


# ---- topics ----

TOTAL, OWN = "topics.total.bytes.in.per.sec.threshold", "topics.bytes.in.per.sec.threshold"
ERROR, SPARED = "topics.reject.error", "topics.spared"


def test_without_a_total_there_are_no_topic_quotas() -> None:
    for topics in (read().topics, read({TOTAL: "unlimited"}).topics):
        assert (topics.total, topics.thresholds, topics.reject_error) == (None, (), "NOT_ENOUGH_REPLICAS")


@pytest.mark.proves("v1.topic-threshold")
def test_thresholds_are_read_with_dots_in_names_and_units_and_shown_in_full() -> None:
    settings = read({TOTAL: "100M", OWN: " important.v1 : 50M , other_2-x:5Ki", ERROR: "policy-violation"})
    assert settings.topics.total == 100_000_000
    assert settings.topics.thresholds == (("important.v1", 50_000_000), ("other_2-x", 5120))
    assert settings.topics.reject_error == "POLICY_VIOLATION"
    assert shown(settings)[OWN] == "important.v1: 50,000,000 bytes/s, other_2-x: 5,120 bytes/s"
    assert read({TOTAL: "10M", OWN: "__mine:1M"}).topics.thresholds == (("__mine", 1_000_000),), "it looks internal"


def test_thresholds_may_take_all_and_not_a_byte_more_whatever_their_order() -> None:
    parts = [f"t{n}:{n}.1" for n in range(1, 100)]
    total = sum(range(1, 100)) + 9.9
    for seed in range(5):
        random.Random(seed).shuffle(parts)
        assert len(read({TOTAL: repr(total), OWN: ",".join(parts)}).topics.thresholds) == 99
        assert "together, above the" in refused({TOTAL: repr(total - 1), OWN: ",".join(parts)})


def test_by_default_kafkas_and_quotahosts_own_topics_are_spared_by_their_whole_names() -> None:
    kafkas = ["__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata",
              "__remote_log_metadata"]  # fmt: skip
    for given, spared in (({}, kafkas), ({SPARED: "a, b,a"}, ["a", "b"]), ({SPARED: ""}, [])):
        assert [*read(given).spared_topics] == spared + [topic.name for topic in TOPICS]


# ---- ``clientA:4M,clientB:10M``, the form of KIP-13's overrides ----


@pytest.mark.parametrize(
    ("text", "rates"),
    [
        ("clientA:4M,clientB:10M", {"clientA": 4e6, "clientB": 10e6}),
        ('"clientA:4M,clientB:10M"', {"clientA": 4e6, "clientB": 10e6}),  # as KIP-13 has its example
        (" a b : 4M ,\tc:1Ki ", {"a b": 4e6, "c": 1024}),
        (r"ns\:app:4M,CN=a\,O=b:2M,back\\slash:1M,\ x\ :3M",
         {"ns:app": 4e6, "CN=a,O=b": 2e6, "back\\slash": 1e6, " x ": 3e6}),
        ("a:unlimited,b\\\nc:1M", {"a": None, "b\nc": 1e6}),
        *((text, {}) for text in ("", "  ", '""')),
    ],
)  # fmt: skip
def test_a_list_of_names_and_rates_is_understood(text: str, rates: dict[str, float | None]) -> None:
    assert parse_rates(text) == rates
