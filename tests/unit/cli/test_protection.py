"""Findings about a broker whose PAUSE no fence enforces, or whose limits don't fit its disks."""

from __future__ import annotations

from pathlib import Path

import pytest

from quotahost.api import DiskState
from quotahost.cli.doctor import protection
from quotahost.cli.property_files import read_broker_file
from quotahost.model import Volume
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX

FENCE = "authorizer.class.name=org.quotahost.QuotaFence"
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def found(tmp_path: Path, *lines: str) -> list[tuple[str, str]]:
    """Text and remedy of each weakness but that of the fallback; lines that begin with a dot have the common prefix."""
    path = tmp_path / "server.properties"
    path.write_text("\n".join(PREFIX + line[1:] if line.startswith(".") else line for line in lines))
    file = read_broker_file(path)
    findings = protection.check_protection(Settings.from_properties(file.properties), file)
    return [(finding.text, finding.remedy) for finding in findings if not finding.text.startswith("fallback.action is")]


@pytest.mark.parametrize(
    ("line", "before", "inner"), [("", "not set", "none"), (f"authorizer.class.name={STANDARD}", STANDARD, STANDARD)]
)
def test_a_factor_source_without_the_fence_lets_producers_escape_and_the_remedy_is_two_lines(
    tmp_path: Path, line: str, before: str, inner: str
) -> None:
    ((text, remedy),) = found(tmp_path, ".factor.source=fixed", line)
    assert f"authorizer.class.name is {before}, not the fence" in text
    assert "floor.bytes (35,000 bytes/s), and a producer that opens new connections escapes even that" in text
    assert "authorizer.class.name=org.quotahost.QuotaFence" in remedy
    assert f"{PREFIX}fence.authorizer={inner}," in remedy


@pytest.mark.parametrize("fence", ["QuotaFence", "MonitoredQuotaFence"])
def test_with_the_fence_nothing_is_weak(tmp_path: Path, fence: str) -> None:
    fence = f"authorizer.class.name=org.quotahost.{fence}"
    assert found(tmp_path, fence, ".factor.source=fixed", "super.users=User:a") == []


def test_a_broker_that_is_no_controller_can_refuse_no_topics(tmp_path: Path) -> None:
    source, broker = ".factor.source=fixed", "process.roles=broker"
    for alone in (broker, "process.roles=controller"):
        ((text, _),) = found(tmp_path, FENCE, source, alone)
        assert "in a PAUSE topics and partitions are still created" in text
        assert "the task cordon" in text
    assert found(tmp_path, FENCE, source, broker, ".pause.creation=allow") == []
    assert found(tmp_path, FENCE, source, "process.roles=broker,controller") == []


def test_a_controller_alone_refuses_new_topics_once_it_knows_where_the_brokers_are(tmp_path: Path) -> None:
    source, controller = ".factor.source=snapshots", "process.roles=controller"
    ((text, _),) = found(tmp_path, FENCE, source, controller)
    assert "static.kafka.admin.bootstrap.servers" in text
    assert found(tmp_path, FENCE, source, controller, ".static.kafka.admin.bootstrap.servers=b:9092") == []
    ((text, _),) = found(tmp_path, FENCE, source, "process.roles=broker")
    assert "controllers refuse new topics and partitions if" in text


SHORT = ".factor.source=snapshots", ".snapshots.period=1s", ".validity=15s"


def test_a_validity_in_which_kafka_may_not_have_fenced_a_broker_that_died_is_weak(tmp_path: Path) -> None:
    ((text, remedy),) = found(tmp_path, FENCE, *SHORT)
    assert text.startswith("validity (15 s) is shorter than it may take Kafka to fence a broker that died")
    assert "broker.session.timeout.ms is 9 s, and twice that if it was the active controller" in text
    assert remedy == f"{PREFIX}validity=19s, or a shorter broker.session.timeout.ms"
    assert found(tmp_path, FENCE, *SHORT, "broker.session.timeout.ms=7000") == []
    assert found(tmp_path, FENCE, *SHORT, ".fenced.brokers=unknown") == []
    assert found(tmp_path, FENCE, ".factor.source=snapshots") == []


#: Proposal 035's own properties, as its text has them, and nothing else.
PROPOSAL = (
    f"{PREFIX}static.storage.soft.min-free-percent=20%", f"{PREFIX}static.storage.hard.min-free-percent=5%",
)  # fmt: skip


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("controller.quorum.voters=1@a:9093,2@b:9093", True),
        ("controller.quorum.bootstrap.servers=a:9093,b:9093", True),
        ("offsets.topic.replication.factor=3", True),
        ("offsets.topic.replication.factor=1", False),
        ("controller.quorum.voters=1@a:9093", False),
    ],
)
def test_one_brokers_disks_protect_no_cluster_of_several(tmp_path: Path, line: str, said: bool) -> None:
    weak = [text for text, _ in found(tmp_path, FENCE, *PROPOSAL, line) if "not cluster-wide" in text]
    assert [line in text for text in weak] == [True] * said
    everywhere = found(tmp_path, FENCE, *PROPOSAL, line, ".factor.source=snapshots", ".tasks=publish-volumes")
    assert not [text for text, _ in everywhere if "not cluster-wide" in text]


SCOPED = ".factor.scope=topics"


def scope(tmp_path: Path, *lines: str) -> list[str]:
    """The text of each weakness of factor.scope."""
    path = tmp_path / "server.properties"
    path.write_text("\n".join(PREFIX + line[1:] if line.startswith(".") else line for line in lines))
    file = read_broker_file(path)
    findings = protection.check_protection(Settings.from_properties(file.properties), file)
    return [finding.text for finding in findings if finding.text.startswith("factor.scope")]


def test_the_scope_topics_needs_the_fence_and_a_source_that_knows_topics(tmp_path: Path) -> None:
    (text,) = scope(tmp_path, SCOPED, ".factor.source=snapshots")
    assert "is not the fence" in text
    (text,) = scope(tmp_path, SCOPED, FENCE, ".factor.source=log-dirs")
    assert "log-dirs doesn't know which topics" in text
    assert scope(tmp_path, SCOPED, FENCE, ".factor.source=snapshots") == []
    assert scope(tmp_path, ".factor.source=log-dirs") == []


def test_without_a_factor_source_nothing_needs_a_fence(tmp_path: Path) -> None:
    assert found(tmp_path, ".floor.bytes=1") == []


def test_a_fence_without_a_factor_source_never_closes_and_is_weak(tmp_path: Path) -> None:
    ((text, remedy),) = found(tmp_path, FENCE)
    assert "never has a reason to close" in text
    assert f"{PREFIX}factor.source" in remedy
    assert found(tmp_path, FENCE, "process.roles=controller") == []


def test_records_of_the_cluster_need_snapshots_of_this_broker(tmp_path: Path) -> None:
    ((text, _),) = found(tmp_path, FENCE, ".factor.source=cluster-volumes", ".tasks=none")
    assert "publish-volumes is not named" in text


@pytest.mark.parametrize("line", ["super.users=User:admin", "allow.everyone.if.no.acl.found=true"])
def test_a_fence_in_front_of_nothing_where_acls_were_in_use_is_weak(tmp_path: Path, line: str) -> None:
    ((text, remedy),) = found(tmp_path, FENCE, ".factor.source=fixed", ".fence.authorizer=none", line)
    assert f"{line.partition('=')[0]} is set" in text
    assert "nobody's rights are checked" in text
    assert f"{PREFIX}fence.authorizer={STANDARD}" in remedy


@pytest.mark.parametrize(
    ("lines", "floor"),
    [
        ([".floor.bytes=35K", ".max.mute=30s"], None),
        ([".floor.bytes=34K"], 34953),
        ([".max.mute=10s"], 104859),
        (["message.max.bytes=10485760"], 349526),
        (["message.max.bytes=1000", ".floor.bytes=100"], None),
    ],
)
def test_a_floor_at_which_one_batch_mutes_for_longer_than_max_mute_is_weak(
    tmp_path: Path, lines: list[str], floor: int | None
) -> None:
    weak = found(tmp_path, FENCE, ".factor.source=fixed", *lines)
    assert [remedy.partition(",")[0] for _, remedy in weak] == ([f"{PREFIX}floor.bytes={floor}"] if floor else [])
    assert all("message.max.bytes" in text for text, _ in weak)


def test_snapshots_without_the_task_that_publishes_them_are_weak(tmp_path: Path) -> None:
    ((text, remedy),) = found(tmp_path, FENCE, ".factor.source=snapshots", ".tasks=")
    assert "publish-volumes" in text
    assert f"{PREFIX}tasks" in remedy
    assert found(tmp_path, FENCE, ".factor.source=snapshots") == []


# ---- the limits, on the disks of this machine ----


@pytest.fixture
def volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A log directory's line; its volume is half full."""
    (tmp_path / "logs").mkdir()
    half = DiskState((Volume("1", "/dev/sda", 100, 50),), places=((str(tmp_path / "logs"), "/dev/sda"),))
    monkeypatch.setattr(protection, "read_disks", lambda *_: half)
    return f"log.dirs={tmp_path / 'logs'},{tmp_path / 'not-here'}"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (".static.storage.hard.min-free-bytes=40", ""),
        (".static.storage.soft.min-free-bytes=60", ""),
        (
            ".static.storage.hard.min-free-bytes=50",
            "volume /dev/sda: 50 of 100 bytes are used, and its hard limit MinFreeBytes 50 bytes is reached at 50: the",
        ),
        (".static.storage.hard.min-free-percent=0.6", "MinFreePercentage 60 % is reached at 40"),
        (".static.storage.hard.min-free-bytes=1G", "is reached at 0, so that it can't be kept however much"),
        (".static.storage.overrides=/dev/sda hard=20", "its hard limit ConsumedBytes 20 bytes is reached at 20"),
        (
            ".static.storage.overrides=/dev/sdx hard=20",
            "/dev/sdx is no volume or log directory of this broker: it applies to nothing",
        ),
    ],
)
def test_limits_that_are_reached_now_or_apply_to_nothing_are_weak(
    tmp_path: Path, volume: str, line: str, words: str
) -> None:
    weak = found(tmp_path, FENCE, volume, line)
    assert [words in text for text, _ in weak] == ([True] if words else [])
    assert all(remedy for _, remedy in weak)


def test_an_override_can_take_a_volume_out_of_the_brokers_limit(tmp_path: Path, volume: str) -> None:
    lines = [".static.storage.hard=20", ".static.storage.overrides=/dev/sda hard=80"]
    assert found(tmp_path, FENCE, volume, *lines) == []


def test_an_override_of_a_log_directory_that_is_not_here_is_not_judged(tmp_path: Path, volume: str) -> None:
    assert found(tmp_path, FENCE, volume, f".static.storage.overrides={tmp_path / 'not-here'} hard=80") == []


def test_where_no_log_directory_is_on_this_machine_its_disks_are_not_judged(tmp_path: Path) -> None:
    lines = [f"log.dirs={tmp_path / 'none'}", ".static.storage.hard=1", ".static.storage.overrides=/x hard=1"]
    assert found(tmp_path, FENCE, *lines) == []


def test_a_real_disk_over_its_limit_is_found(tmp_path: Path) -> None:
    ((text, _),) = found(tmp_path, FENCE, f"log.dirs={tmp_path}", ".static.storage.hard.min-free-percent=1.0")
    assert "MinFreePercentage 100 % is reached at 0" in text


def test_overrides_with_a_source_that_does_not_look_at_the_disks_are_weak(tmp_path: Path) -> None:
    lines = [".factor.source=log-dirs", ".static.storage.overrides=/dev/sda hard=80", f"log.dirs={tmp_path}/no"]
    ((text, remedy),) = found(tmp_path, FENCE, *lines)
    assert "they apply to no volume" in text
    assert "local" in remedy
