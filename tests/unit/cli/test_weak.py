"""``quotahost doctor``: settings that work and protect less than they seem to."""

from __future__ import annotations

from pathlib import Path

import pytest

from quotahost.cli.console import Finding, Level
from quotahost.cli.doctor.settings import check_weaknesses
from quotahost.cli.property_files import BrokerFile
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from tests.unit.cli.commands import broker

EVEN = "quota.window.num=2\n"
TOTAL = "topics.total.bytes.in.per.sec.threshold"


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ("listeners=PLAINTEXT://:9092", "nobody authenticates on PLAINTEXT, and no principal is excluded"),
        (
            f"listeners=PLAINTEXT://:9092\n{PREFIX}static.excluded.principal.name.list=ANONYMOUS",
            "nobody there is throttled",
        ),
        (f"{PREFIX}metrics.port=0.0.0.0:9404", "metrics are served on 0.0.0.0"),
        (f"{PREFIX}clients.idle=59m", "clients.idle is below the hour"),
        (f"{PREFIX}newcomers.controller-mutation=unlimited", "newcomers are unlimited (controller-mutation)"),
        (f"{PREFIX}factor.source=fixed\n{PREFIX}fallback.action=OPEN", "fallback.action is OPEN"),
        (f"{PREFIX}factor.source=fixed\n{PREFIX}validity=500ms", "validity is not above twice factor.interval"),
        (f"{PREFIX}factor.source=fixed\n{PREFIX}static.storage.hard.min-free-percent=0.0", "leaves nothing free"),
        (f"{PREFIX}factor.source=local\n{PREFIX}static.storage.overrides=/d hard.min-free-bytes=0", "nothing free"),
        (f"{PREFIX}policy=p", "a policy is named, but no factor.source"),
        (f"{PREFIX}shadow=all", "nothing is enforced"),
        (f"{PREFIX}shadow=topics,factor", "in shadow, and so not enforced: factor, topics"),
        (f"{PREFIX}supplier=static", "nobody is throttled"),
        (f"{PREFIX}supplier=mine\n{PREFIX}static.fetch=1M", "the supplier static is not named"),
        (f"{PREFIX}{TOTAL}=10M", "the broker's authorizer is not the fence"),
        (
            f"{PREFIX}{TOTAL}=10M\n{PREFIX}{TOTAL.replace('total.', '')}=a:4M,b:6M\n"
            "authorizer.class.name=org.quotahost.QuotaFence",
            "topics without a threshold of their own take nothing in",
        ),
    ],
)
def test_each_weakness_is_found_once_with_a_remedy(tmp_path: Path, properties: str, words: str) -> None:
    listeners = EVEN if "listeners" in properties else f"{EVEN}listeners=SASL_SSL://:9092\n"
    if "factor.source" in properties:
        listeners += "authorizer.class.name=org.quotahost.QuotaFence\n"
    file = broker(tmp_path, listeners + properties)
    (weak,) = check_weaknesses(Settings.from_properties(file.properties), file)
    assert weak.level is Level.WEAK
    assert words in weak.text
    assert weak.remedy


def of_windows(file: BrokerFile) -> list[Finding]:
    weak = check_weaknesses(Settings.from_properties(file.properties), file)
    return [finding for finding in weak if finding.text.startswith("quotas are measured")]


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "::1", "127.1.2.3"])
def test_metrics_on_loopback_are_not_weak(tmp_path: Path, address: str) -> None:
    metrics = f"{PREFIX}metrics.port={address}:9404"
    file = broker(tmp_path, f"{EVEN}listeners=SASL_SSL://:9092\n{metrics}")
    assert not list(check_weaknesses(Settings.from_properties(file.properties), file))


@pytest.mark.parametrize(
    ("properties", "words", "remedy"),
    [
        (
            "",
            "11 windows of 1 s: a client that sends as fast as it can gets 11 s of its quota at once, and then next to"
            " nothing for 10 s",
            "quota.window.num=2",
        ),
        ("quota.window.num=5", "gets 5 s of its quota at once, and then next to nothing for 4 s", "quota.window.num=2"),
        (
            "quota.window.num=2\nquota.window.size.seconds=30",
            "60 s of its quota at once, and then next to nothing for 30 s",
            "quota.window.num=2 and quota.window.size.seconds=1",
        ),
        ("process.roles=broker,controller", "gets 11 s of its quota at once", "quota.window.num=2"),
    ],
)
def test_many_windows_are_weak_by_what_they_do_to_an_eager_client(
    tmp_path: Path, properties: str, words: str, remedy: str
) -> None:
    (weak,) = of_windows(broker(tmp_path, properties))
    assert weak.level is Level.WEAK
    assert words in weak.text
    assert weak.remedy == remedy


@pytest.mark.parametrize("properties", [EVEN, "quota.window.num=1", "process.roles=controller", "quota.window.num=x"])
def test_two_windows_are_even_and_a_controller_has_no_producers(tmp_path: Path, properties: str) -> None:
    assert not of_windows(broker(tmp_path, properties))
