"""Whether quotahost's topics are open to all, by a broker's properties."""

from __future__ import annotations

from pathlib import Path

import pytest

from quotahost.cli.console import Level
from quotahost.cli.doctor import rights
from quotahost.cli.doctor.rights import check_cluster, check_rights, named
from quotahost.plugins.kafka.rights import NoAnswer, Rights
from quotahost.records.topics import CLUSTER_VOLUMES, SHARES, SNAPSHOTS, TOPICS, USAGE
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from tests.unit.cli.commands import broker, run

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
FENCE = "authorizer.class.name=org.quotahost.QuotaFence"


def found(tmp_path: Path, *lines: str) -> list[str]:
    text = "\n".join(PREFIX + line[1:] if line.startswith(".") else line for line in lines)
    file = broker(tmp_path, text)
    findings = list(check_rights(Settings.from_properties(file.properties), file))
    assert all(each.level is Level.WEAK and each.remedy for each in findings)
    return [each.text for each in findings]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((".factor.source=snapshots",), "authorizer.class.name is not set: everybody who can connect may write to "),
        ((".factor.source=cluster-volumes", FENCE, ".fence.authorizer=none"), "fence.authorizer is none: everybody"),
        (
            (".supplier=cluster-quota", FENCE, "allow.everyone.if.no.acl.found=TRUE"),
            "allow.everyone.if.no.acl.found is true: unless ACLs are set for __quotahost_usage, __quotahost_shares,",
        ),
        (
            (".factor.source=snapshots", f"authorizer.class.name={STANDARD}", "allow.everyone.if.no.acl.found=true"),
            "allow.everyone.if.no.acl.found is true",
        ),
        ((".factor.source=snapshots", ".snapshots.topic=mine"), "may write to mine, and"),
    ],
)
def test_topics_that_everybody_may_write_to_are_weak(tmp_path: Path, lines: tuple[str, ...], words: str) -> None:
    (text,) = found(tmp_path, *lines)
    assert words in text


@pytest.mark.parametrize(
    "lines",
    [
        (),
        (".factor.source=local",),
        (".factor.source=snapshots", FENCE),
        (".factor.source=snapshots", f"authorizer.class.name={STANDARD}", "allow.everyone.if.no.acl.found=false"),
        (".factor.source=snapshots", "process.roles=controller"),
    ],
)
def test_with_an_authorizer_or_without_such_topics_nothing_is_weak(tmp_path: Path, lines: tuple[str, ...]) -> None:
    assert found(tmp_path, *lines) == []


def test_the_topics_are_named_as_the_settings_name_them() -> None:
    assert list(named(None)) == [each.name for each in TOPICS]
    settings = Settings.from_properties({f"{PREFIX}snapshots.topic": "a", f"{PREFIX}shares.topic": "b"})
    assert list(named(settings)) == [
        "a",
        CLUSTER_VOLUMES.name,
        USAGE.name,
        "b",
        "__quotahost_refused",
        "__quotahost_ticks",
    ]


def test_the_declared_names_and_properties_are_those_of_brokers_and_of_the_pipeline() -> None:
    options = pytest.importorskip("quotahost.pipeline.options").Options(bootstrap="x", checkpoint="y")
    settings = Settings.from_properties({})
    by_property = {
        "snapshots.topic": settings.snapshots_topic,
        "cluster.volumes.topic": settings.cluster_volumes_topic,
        "usage.topic": settings.usage_topic,
        "shares.topic": settings.shares_topic,
    }
    assert {t.brokers_property: t.name for t in TOPICS if t.brokers_property} == by_property
    for topic in TOPICS:
        given = getattr(options, topic.pipeline_option)
        assert topic.name in (given if isinstance(given, tuple) else (given,))


NONE = frozenset[str]()


def cluster(monkeypatch: pytest.MonkeyPatch, answer: Rights | NoAnswer, **config: str) -> list[tuple[Level, str]]:
    def ask(given: dict[str, str], topics: tuple[str, ...]) -> Rights:
        assert given == {**config, "bootstrap.servers": "b:9092"}
        if isinstance(answer, NoAnswer):
            raise answer
        return answer

    monkeypatch.setattr(rights, "ask", ask)
    return [(each.level, each.text) for each in check_cluster("b:9092", config, None)]


def test_a_cluster_without_an_authorizer_is_weak_once(monkeypatch: pytest.MonkeyPatch) -> None:
    open_to_all = {SNAPSHOTS.name: frozenset({"Write"})}
    everything = frozenset({"Alter", "Describe"})
    ((level, text),) = cluster(monkeypatch, Rights(open_to_all, everything, ()))
    assert level is Level.WEAK
    assert "b:9092 lets a client without credentials do everything: there is no authorizer, or" in text
    assert "may write to __quotahost_snapshots, " in text
    findings = cluster(monkeypatch, Rights(open_to_all, everything, ()), **{"sasl.username": "admin"})
    assert findings == [(Level.NOTE, "these credentials may Write __quotahost_snapshots")]


def test_what_a_client_without_credentials_may_do_is_weak(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {SNAPSHOTS.name: frozenset({"Write", "Read"}), USAGE.name: NONE}
    findings = cluster(monkeypatch, Rights(own, NONE, None))
    (weak,) = (text for level, text in findings if level is Level.WEAK)
    assert (
        "a client without credentials may Read, Write __quotahost_snapshots: whoever does stops all producers" in weak
    )


def test_closed_topics_are_good_and_acls_for_everybody_are_weak(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {SHARES.name: NONE}
    findings = cluster(monkeypatch, Rights(own, NONE, ()))
    assert findings == [(Level.GOOD, "a client without credentials has no right to quotahost's topics on b:9092")]
    acl = (SHARES.name, "prefixed __", "Write")
    findings = cluster(monkeypatch, Rights(own, NONE, (acl,)), **{"sasl.password": "secret"})
    assert [level for level, _ in findings] == [Level.WEAK, Level.GOOD]
    assert (
        "an ACL for prefixed __ lets everybody (User:*) Write __quotahost_shares: whoever does takes" in findings[0][1]
    )


def test_a_cluster_that_does_not_answer_is_said_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    ((level, text),) = cluster(monkeypatch, NoAnswer("timed out"), **{"sasl.password": "secret"})
    assert level is Level.NOTE
    assert text == "b:9092 doesn't answer with these credentials: timed out"


def test_nobody_there_is_a_note_and_a_missing_file_an_error(tmp_path: Path) -> None:
    shown = run("doctor", "--against", "127.0.0.1:1")
    assert "127.0.0.1:1 doesn't answer a client without credentials" in shown.output
    missing = run("doctor", "--against", "127.0.0.1:1", "--client-config", tmp_path / "no")
    assert missing.exit_code != 0
    assert "can't be read" in missing.output + missing.stderr
