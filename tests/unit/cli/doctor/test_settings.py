"""Tests ``quotahost doctor``: properties that work but protect less than they seem to."""

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigSource

from quotahost.api import DiskState
from quotahost.cli.console import Finding, Level
from quotahost.cli.doctor import settings as module
from quotahost.cli.doctor.settings import check_protection, check_stored, check_weaknesses
from quotahost.cli.doctor.topics import STANDARD
from quotahost.model import Volume
from quotahost.settings.declaration import PREFIX
from tests.unit.cli.commands import broker_file

Found = Callable[..., list[Finding]]

EVEN = "quota.window.num=2"
CLOSED = "listeners=SASL_SSL://:9092"
FENCE = "authorizer.class.name=org.quotahost.QuotaFence"
TOTAL = "topics.total.bytes.in.per.sec.threshold"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["listeners=PLAINTEXT://:9092"], "nobody authenticates on PLAINTEXT: brokers and plugins are recognized"),
        (["listeners=A://:1,B://:2", "listener.security.protocol.map=A:SSL,B:SSL", "ssl.client.auth=required",
          "listener.name.b.ssl.client.auth=requested"], "nobody authenticates on B:"),
        (["listeners=PLAINTEXT://:9092", ".exempt.principals=ANONYMOUS"], "nobody there is throttled"),
        *(([f".metrics.port={host}:9404"], f"metrics are served on {host}") for host in ("0.0.0.0", "127.a.com")),
        (["listeners=SASL_SSL://:1, SASL_PLAINTEXT://:9092", ".metrics.port=9092"], "metrics.port is 9092, which"),
        ([".clients.idle=59m"], "clients.idle is below the hour"),
        ([".newcomers.controller-mutation=unlimited"], "newcomers are unlimited (controller-mutation)"),
        ([FENCE, ".factor.source=fixed", ".fallback.action=OPEN"], "fallback.action is OPEN"),
        ([FENCE, ".factor.source=fixed", ".factor.quota.types=FETCH"], "no producer is slowed or turned back"),
        ([FENCE, ".factor.source=fixed", ".factor.interval=1s", ".validity=2s"],
         "validity is not above twice factor.interval"),
        ([FENCE, ".factor.source=fixed", ".static.storage.hard.min-free-percent=0.0"], "leaves nothing free"),
        ([FENCE, ".factor.source=local", ".static.storage.overrides=/d hard.min-free-bytes=0"], "nothing free"),
        ([".policy=p"], "a policy is named, but no factor.source"),
        ([".shadow=all"], "nothing is enforced"),
        (["metric.reporters=com.example.Reporter"], "without Kafka's own reporter, top, usage and shadow"),
        ([".shadow=topics,factor"], "in shadow, and so not enforced: factor, topics"),
        ([".supplier=static"], "nobody is throttled"),
        ([".supplier=mine", ".static.fetch=1M"], "the supplier static is not named"),
        ([f".{TOTAL}=10M"], "the broker's authorizer is not the fence"),
        ([FENCE, f".{TOTAL}=10M", f".{TOTAL.replace('total.', '')}=a:4M,b:6M"], "without a threshold take nothing"),
    ],
)  # fmt: skip
def test_each_weakness_is_found_once_with_a_remedy(found: Found, lines: list[str], words: str) -> None:
    lines = lines if "listeners" in lines[0] else [CLOSED, *lines]
    (weak,) = found(check_weaknesses, EVEN, "super.users=User:a", *lines)
    assert (weak.level, words in weak.text, bool(weak.remedy)) == (Level.WEAK, True, True)


@pytest.mark.parametrize(
    "lines",
    [
        ["listeners=SASL_SSL://:9092,SASL_PLAINTEXT://:9093"],
        ["listeners=SSL://:9092", "ssl.client.auth=required"],
        ["listeners=in://:1,ctl://:2", "listener.security.protocol.map=IN:SASL_SSL,CTL:PLAINTEXT",
         "controller.listener.names=CTL"],
        # Brokers authenticate to each other; clients don't authenticate.
        *(["listeners=OPEN://:1,IN://:2", "inter.broker.listener.name=IN",
           f"listener.security.protocol.map=OPEN:PLAINTEXT,{between}"]
          for between in ("IN:SASL_SSL\nsasl.jaas.config=x principal=kafka", "IN:SSL\nssl.client.auth=requested")),
        ["config.providers=env", "listeners=${env:LISTENERS}"],
        [CLOSED, "metric.reporters=com.example.Reporter,org.apache.kafka.common.metrics.JmxReporter"],
        *([CLOSED, f".metrics.port={address}:9404"] for address in ("127.0.0.1", "localhost", "::1", "127.1.2.3")),
    ],
)  # fmt: skip
def test_what_is_safe_or_not_known_is_no_weakness(found: Found, lines: list[str]) -> None:
    assert not found(check_weaknesses, EVEN, *lines)


def test_brokers_with_certificates_of_their_own_are_named_unless_they_are_excluded(
    found: Found, capfd: pytest.CaptureFixture[str]
) -> None:
    """A broker knows its own principal, and delays the records of other brokers' plugins by its clients' quotas."""
    tls = [EVEN, "listeners=SSL://:9092", "security.inter.broker.protocol=SSL", ".tasks=publish-volumes"]

    def told(*lines: str) -> list[Level]:
        return [each.level for each in found(check_weaknesses, *tls, *lines) if "subjects" in each.text]

    mutual = "ssl.client.auth=required"
    assert told(mutual) == [Level.NOTE]
    assert told(mutual, ".exempt.principals=User:CN=broker-1;User:CN=broker-2") == told() == []
    assert told(mutual, ".kafka.bootstrap.servers=b:9092") == []
    assert capfd.readouterr().err == ""  # librdkafka's


@pytest.mark.parametrize(
    ("properties", "words", "remedy"),
    [
        ("", "11 windows of 1 s: an eager client gets 11 s of its quota at once, and then next to nothing for 10 s",
         EVEN),
        (f"{EVEN}\nquota.window.size.seconds=30", "60 s of its quota at once, and then next to nothing for 30 s",
         f"{EVEN} and quota.window.size.seconds=1"),
        (EVEN, "", ""),
        ("process.roles=controller", "", ""),  # a controller has no producers
        ("quota.window.num=x", "", ""),
    ],
)  # fmt: skip
def test_many_windows_are_weak_for_an_eager_client(found: Found, properties: str, words: str, remedy: str) -> None:
    weak = [each for each in found(check_weaknesses, properties) if each.text.startswith("quotas are measured")]
    expected = [(Level.WEAK, True, remedy)] if words else []
    assert [(each.level, words in each.text, each.remedy) for each in weak] == expected


# ---- protection of disks ----

FIXED, SNAPSHOTS = ".factor.source=fixed", ".factor.source=snapshots"
BROKER, CONTROLLER = "process.roles=broker", "process.roles=controller"
CREATES = "in a PAUSE topics and partitions are still created"
SHORT = SNAPSHOTS, ".snapshots.period=1s", ".validity=15s"
#: Only proposal 035's own properties, as in its text.
PROPOSAL = ".static.storage.soft.min-free-percent=20%", ".static.storage.hard.min-free-percent=5%"


@pytest.fixture
def weak(found: Found) -> Callable[..., list[tuple[str, str]]]:
    """A function that finds weaknesses except the fallback's; there are ACLs unless a line says otherwise."""

    def run(*lines: str) -> list[tuple[str, str]]:
        if not any("fence.authorizer" in line or "super.users" in line for line in lines):
            lines = (*lines, "super.users=User:admin")
        findings = [(finding.text, finding.remedy) for finding in found(check_protection, *lines)]
        return [(text, remedy) for text, remedy in findings if not text.startswith("fallback.action is")]

    return run


Weak = Callable[..., list[tuple[str, str]]]


@pytest.mark.parametrize(
    ("lines", "texts", "remedy"),
    [
        *((lines, [], "") for lines in (
            [".floor.bytes=1"],  # without a factor source nothing needs a fence
            [FENCE, FIXED, "super.users=User:a"],
            ["authorizer.class.name=org.quotahost.MonitoredQuotaFence", FIXED, "super.users=User:a"],
            [FENCE, CONTROLLER],
            [FENCE, SNAPSHOTS],
            [FENCE, FIXED, BROKER, ".pause.creation=allow"],
            [FENCE, SNAPSHOTS, CONTROLLER, ".static.kafka.admin.bootstrap.servers=b:9092"],
            [FENCE, *SHORT, "broker.session.timeout.ms=7000"],
            [FENCE, SNAPSHOTS, f"broker.session.timeout.ms={'9' * 5000}"],  # no broker starts with this
            [FENCE, *SHORT, ".fenced.brokers=unknown"],
            [FENCE, SNAPSHOTS, ".factor.scope=topics"],
            [FENCE, FIXED, ".floor.bytes=35K", ".max.mute=30s"],
            [FENCE, FIXED, "message.max.bytes=1000", ".floor.bytes=100"])),
        ([FIXED], ["authorizer.class.name is not set, so there is no fence", "floor.bytes (35,000 bytes/s)"],
         f"{FENCE} and {PREFIX}fence.authorizer=none,"),
        ([FIXED, f"authorizer.class.name={STANDARD}"], [f"authorizer.class.name is {STANDARD}, so there is no fence"],
         f"{FENCE} and {PREFIX}fence.authorizer={STANDARD},"),
        ([FENCE], ["never has a reason to close"], f"{PREFIX}factor.source"),
        ([FENCE, FIXED, BROKER], [CREATES, "the task cordon"], ""),
        ([FENCE, SNAPSHOTS, CONTROLLER], [CREATES, f"{PREFIX}static.kafka.admin.*"], ""),
        ([FENCE, *SHORT], ["validity (15 s) is shorter than the time that Kafka may need to fence a dead broker",
                           "broker.session.timeout.ms is 9 s, and twice that if it was the active controller"],
         f"{PREFIX}validity=19s, or a shorter broker.session.timeout.ms"),
        ([FENCE, ".factor.source=cluster-volumes", ".tasks=none"], ["publish-volumes is not named"], f"{PREFIX}tasks"),
        ([FENCE, FIXED, ".fence.authorizer=none", "super.users=User:admin"],
         ["super.users is set", "nobody's rights are checked"], f"{PREFIX}fence.authorizer={STANDARD}"),
        ([FENCE, FIXED, f".fence.authorizer={STANDARD}"],
         ["denies what no ACL allows, also to brokers; neither super.users nor"], f"{PREFIX}fence.authorizer=none"),
        ([FENCE, FIXED, ".fence.authorizer=org.quotahost.QuotaFence"], ["is the fence itself"], "none"),
        ([FENCE, FIXED, ".max.mute=10s"], ["message.max.bytes"], f"{PREFIX}floor.bytes=104859,"),
        ([".factor.scope=topics"], ["factor.scope is topics, but authorizer.class.name is not the fence"], FENCE),
        ([FENCE, ".factor.source=log-dirs", ".factor.scope=topics"],
         ["log-dirs doesn't know which topics", "a factor is for all clients"], f"{PREFIX}factor.source=snapshots"),
        ([FENCE, ".factor.source=log-dirs", ".static.storage.overrides=/dev/sda hard=80", "log.dirs=/no/where"],
         ["overrides apply to no volume"], "local"),
    ],
)  # fmt: skip
def test_what_protects_less_than_it_seems_is_said(weak: Weak, lines: list[str], texts: list[str], remedy: str) -> None:
    found = weak(*lines)
    assert [[words in text for words in texts] for text, _ in found] == [[True] * len(texts)] * bool(texts)
    assert all(remedy in how for _, how in found)


@pytest.mark.parametrize(
    ("line", "is_said"),
    [
        *((line, True) for line in ("controller.quorum.voters=1@a:9093,2@b:9093", "offsets.topic.replication.factor=3",
                                    "controller.quorum.bootstrap.servers=a:9093,b:9093")),
        *((line, False) for line in ("offsets.topic.replication.factor=1", "controller.quorum.voters=1@a:9093")),
    ],
)  # fmt: skip
def test_one_brokers_disks_protect_no_cluster_of_several(weak: Weak, line: str, is_said: bool) -> None:
    texts = [text for text, _ in weak(FENCE, *PROPOSAL, line) if "not cluster-wide" in text]
    assert [line in text for text in texts] == [True] * is_said
    everywhere = weak(FENCE, *PROPOSAL, line, SNAPSHOTS, ".tasks=publish-volumes")
    assert not [text for text, _ in everywhere if "not cluster-wide" in text]


@pytest.fixture
def volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The property log.dirs with a directory whose volume is half full."""
    (tmp_path / "logs").mkdir()
    half = DiskState((Volume("1", "/dev/sda", 100, 50),), places=((str(tmp_path / "logs"), "/dev/sda"),))
    monkeypatch.setattr(module, "read_disks", lambda *_: half)
    return f"log.dirs={tmp_path / 'logs'},{tmp_path / 'not-here'}"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([".static.storage.hard.min-free-bytes=40"], ""),
        ([".static.storage.hard=20", ".static.storage.overrides=/dev/sda hard=80"], ""),
        ([".static.storage.hard.min-free-bytes=50"],
         "volume /dev/sda: 50 of 100 bytes are used, and its hard limit MinFreeBytes 50 bytes is reached at 50: the"),
        ([".static.storage.overrides=/dev/sda hard=20"], "its hard limit ConsumedBytes 20 bytes is reached at 20"),
        ([".static.storage.overrides=/dev/sdx hard=20"],
         "/dev/sdx is no volume or log directory of this broker, so the entry has no effect"),
    ],
)  # fmt: skip
def test_limits_reached_now_or_for_nothing_are_weak(weak: Weak, volume: str, lines: list[str], words: str) -> None:
    findings = weak(FENCE, volume, *lines)
    assert [words in text for text, _ in findings] == ([True] if words else [])
    assert all(remedy for _, remedy in findings)


def test_log_directories_that_are_not_on_this_machine_are_not_judged(tmp_path: Path, weak: Weak, volume: str) -> None:
    assert weak(FENCE, volume, f".static.storage.overrides={tmp_path / 'not-here'} hard=80") == []
    lines = [f"log.dirs={tmp_path / 'none'}", ".static.storage.hard=1", ".static.storage.overrides=/x hard=1"]
    assert weak(FENCE, *lines) == []
    lines = ["process.roles=controller", ".static.storage.hard=20", ".static.storage.overrides=/dev/sdx hard=20"]
    assert not [text for text, _ in weak(FENCE, volume, *lines) if "/dev/sd" in text], "controllers hold no user topics"


# ---- stored properties of a running cluster ----

OF_FILE = ConfigSource.STATIC_BROKER_CONFIG.value
OF_ALL, OF_THIS = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value, ConfigSource.DYNAMIC_BROKER_CONFIG.value
OWN = ["node.id=1", "num.io.threads=8", "log.retention.ms=60000", ".shadow=factor"]


@pytest.mark.parametrize(
    ("lines", "entries", "words"),
    [
        (OWN, {"num.io.threads": ("8", OF_FILE)}, ["broker 1 has no stored value of"]),
        (OWN, {"num.io.threads": ("8", OF_ALL), "log.cleaner.threads": ("2", OF_ALL)}, ["broker 1 has no stored"]),
        (OWN, {"num.io.threads": ("16", OF_THIS), f"{PREFIX}shadow": (None, OF_ALL), f"{PREFIX}policy": (None, OF_ALL)},
         [f"that override this file's: {PREFIX}policy, {PREFIX}shadow, num.io.threads"]),
        (OWN, {f"{PREFIX}{name}": (None, OF_ALL) for name in ("shadow", "polcy", "plugin.own.any")},
         [f"no effect: {PREFIX}polcy: unknown property; did you mean {PREFIX}policy?",
          f"this file's: {PREFIX}plugin.own.any, {PREFIX}shadow"]),
        (OWN, KafkaError.CLUSTER_AUTHORIZATION_FAILED, ["the stored values of broker 1 are not checked"]),
        (["node.id=1", "process.roles=controller"], {}, []),
        (["node.id=${env:ID}", "config.providers=env"], {}, []),
    ],
)  # fmt: skip
def test_stored_values_are_named_not_shown(tmp_path: Path, lines: list[str], entries: Any, words: list[str]) -> None:
    asked: Future[Any] = Future()
    if isinstance(entries, dict):
        asked.set_result({n: SimpleNamespace(value=value, source=source) for n, (value, source) in entries.items()})
    else:
        asked.set_exception(KafkaException(KafkaError(entries)))
    client: Any = SimpleNamespace(describe_configs=lambda resources, request_timeout: dict.fromkeys(resources, asked))
    findings = list(check_stored(client, "b:9092", broker_file(tmp_path, *lines), {}))
    assert [word in each.text for word, each in zip(words, findings, strict=True)] == [True] * len(words)
    assert not {each.remedy[:43] for each in findings} - {"", "kafka-configs.sh --bootstrap-server b:9092 "}
    assert "16" not in str(findings)
