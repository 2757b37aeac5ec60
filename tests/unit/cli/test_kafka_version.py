"""``quotahost doctor``: what it says of the broker's Kafka, by its version."""

from __future__ import annotations

from pathlib import Path

import pytest

from quotahost.cli.console import Level
from quotahost.cli.doctor.installation import check_version


def findings(home: Path, *jars: str) -> list[tuple[Level, str]]:
    (home / "libs").mkdir(parents=True)
    for jar in jars:
        (home / "libs" / jar).touch()
    return [(finding.level, finding.text) for finding in [check_version(home / "libs")]]


@pytest.mark.parametrize("version", ["4.0.0", "4.1.1", "4.2.0", "4.2.1", "4.3.0", "4.3.1"])
def test_versions_with_the_null_pointer_are_weak(tmp_path: Path, version: str) -> None:
    ((level, text),) = findings(tmp_path, f"kafka-clients-{version}.jar", "kafka_2.13-1.0.0.jar")
    assert level is Level.WEAK
    assert f"Kafka {version} " in text
    assert "KAFKA-20746" in text


@pytest.mark.parametrize("version", ["4.2.2", "4.3.2", "4.3.10", "4.4.0"])
def test_later_ones_are_good(tmp_path: Path, version: str) -> None:
    assert findings(tmp_path, f"kafka-clients-{version}.jar") == [(Level.GOOD, f"Kafka {version}")]


@pytest.mark.parametrize("version", ["3.9.1", "4.5.0", "5.0.0"])
def test_versions_that_were_never_tried_are_weak(tmp_path: Path, version: str) -> None:
    ((level, text),) = findings(tmp_path, f"kafka-clients-{version}.jar")
    assert level is Level.WEAK
    assert "tried with 4.0 to 4.4 only" in text


def test_a_folder_without_kafka_is_no_fault(tmp_path: Path) -> None:
    ((level, _),) = findings(tmp_path, "kafka-clients-trunk.jar")
    assert level is Level.NOTE
