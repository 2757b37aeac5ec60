"""``quotahost install``: puts the jar into a Kafka, and leaves nothing half done."""

import sys
import zipfile
from pathlib import Path

import pytest

from quotahost.cli import install
from quotahost.settings.declaration import PREFIX
from tests.unit.cli.commands import run, write_jar


@pytest.mark.proves("mission.one-jar")
def test_install_puts_the_jar_into_libs_and_prints_the_properties(package: Path, kafka: Path) -> None:
    jar = write_jar(package / "_jar" / "quotahost.jar", "0.2.0")

    result = run("install", "--kafka-home", kafka)

    assert result.exit_code == 0
    installed = kafka / "libs" / "quotahost-0.2.0.jar"
    assert installed.read_bytes() == jar.read_bytes()
    assert installed.stat().st_mode & 0o777 == 0o644
    assert [path.name for path in (kafka / "libs").iterdir()] == ["quotahost-0.2.0.jar"]
    assert str(installed) in result.output
    lines = result.output.splitlines()
    assert f"{PREFIX}class=org.quotahost.PythonQuotaCallback" in lines
    assert f"{PREFIX}python.executable={sys.executable}" in lines


def test_install_replaces_older_jars_says_so_and_spares_those_of_others(package: Path, kafka: Path) -> None:
    write_jar(package / "_jar" / "quotahost.jar", "0.2.0")
    libs = kafka / "libs"
    write_jar(libs / "quotahost-0.1.0.jar", "0.1.0")
    (libs / "quotahost-0.2.0.jar").write_bytes(b"half a jar")
    with zipfile.ZipFile(libs / "quotahost-of-somebody-else.jar", "w") as archive:
        archive.writestr("x", "")

    result = run("install", "--kafka-home", kafka)

    assert result.exit_code == 0
    assert sorted(path.name for path in libs.iterdir()) == ["quotahost-0.2.0.jar", "quotahost-of-somebody-else.jar"]
    assert install.jars_in(libs) == [install.Jar(libs / "quotahost-0.2.0.jar", "0.2.0", "1.7.1")]
    assert "instead of quotahost-0.1.0.jar (quotahost 0.1.0)" in result.output


def test_install_without_a_jar_in_the_package_says_how_to_get_one(package: Path, kafka: Path) -> None:
    result = run("install", "--kafka-home", kafka)
    assert result.exit_code == 1
    assert "`make build`" in result.output
    assert list((kafka / "libs").iterdir()) == []


def test_install_into_a_folder_that_is_no_kafka_ends_with_1(package: Path, tmp_path: Path) -> None:
    write_jar(package / "_jar" / "quotahost.jar")
    result = run("install", "--kafka-home", tmp_path)
    assert result.exit_code == 1
    assert "no folder libs" in result.output


def test_a_failed_copy_leaves_nothing_behind(package: Path, kafka: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_jar(package / "_jar" / "quotahost.jar")

    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("shutil.copyfile", full)
    result = run("install", "--kafka-home", kafka)
    assert result.exit_code == 1
    assert "No space left" in result.output
    assert list((kafka / "libs").iterdir()) == []
