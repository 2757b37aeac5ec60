"""Whether quotahost's topics are open to all, by a broker's properties."""

from __future__ import annotations

from pathlib import Path

import pytest

from quotahost.cli.console import Level
from quotahost.cli.doctor.topics import check_rights, named
from quotahost.records.topics import TOPICS
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from tests.unit.cli.commands import broker

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
        ((".factor.source=snapshots", ".topics.prefix=my_"), "may write to my_snapshots, and"),
    ],
)
def test_topics_that_everybody_may_write_to_are_weak(tmp_path: Path, lines: tuple[str, ...], words: str) -> None:
    (text,) = (text for text in found(tmp_path, *lines) if "decides by" in text)
    assert words in text


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((), "authorizer.class.name is not set: everybody who can connect may write to __quotahost_watch,"),
        ((FENCE, ".fence.authorizer=none"), "fence.authorizer is none: everybody who can connect may"),
        ((f"authorizer.class.name={STANDARD}", "allow.everyone.if.no.acl.found=true"), "unless ACLs are set for them"),
        ((".topics.prefix=my_",), "shows the names and rates of all clients, and read them in my_looks"),
    ],
)
def test_the_names_and_rates_of_clients_that_everybody_may_see_are_weak(
    tmp_path: Path, lines: tuple[str, ...], words: str
) -> None:
    (text,) = found(tmp_path, ".tasks=publish-usage", *lines)
    assert words in text


@pytest.mark.parametrize(
    "lines",
    [
        (),
        (".factor.source=local",),
        (".tasks=publish-usage", f"authorizer.class.name={STANDARD}"),
        (".tasks=publish-usage", "process.roles=controller"),
        (".factor.source=snapshots", FENCE),
        (".factor.source=snapshots", f"authorizer.class.name={STANDARD}", "allow.everyone.if.no.acl.found=false"),
        (".factor.source=snapshots", "process.roles=controller"),
    ],
)
def test_with_an_authorizer_or_without_such_topics_nothing_is_weak(tmp_path: Path, lines: tuple[str, ...]) -> None:
    assert found(tmp_path, *lines) == []


def test_the_topics_are_named_as_the_settings_name_them() -> None:
    assert list(named(None)) == [each.name for each in TOPICS]
    settings = Settings.from_properties({f"{PREFIX}topics.prefix": "a-"})
    assert list(named(settings)) == [topic.name.replace("__quotahost_", "a-") for topic in TOPICS]


def test_the_declared_names_and_properties_are_those_of_brokers_and_of_the_pipeline() -> None:
    options = pytest.importorskip("quotahost.pipeline.options").Options(bootstrap="x", checkpoint="y")
    settings = Settings.from_properties({})
    assert {topic.name for topic in TOPICS if topic.brokers} == {
        settings.snapshots_topic, settings.cluster_volumes_topic, settings.usage_topic, settings.shares_topic,
        settings.watch_topic, settings.looks_topic, settings.quotas_topic,
    }  # fmt: skip
    for topic in (each for each in TOPICS if each.pipeline):
        given = getattr(options, topic.pipeline_option)
        assert topic.name in (given if isinstance(given, tuple) else (given,))
