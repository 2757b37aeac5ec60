"""``quotahost install``: puts the jar into a Kafka, and leaves nothing half done."""

import shlex
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
    kafka = kafka.rename(kafka.with_name("Kafka's home"))
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
    assert shlex.split(lines[-1])[-2:] == ["--kafka-home", str(kafka)], "a shell takes the next command as it stands"


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


def test_an_install_that_cannot_be_done_says_why_and_leaves_nothing_behind(
    package: Path, kafka: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def installed(home: Path = kafka) -> str:
        result = run("install", "--kafka-home", home)
        assert result.exit_code == 1
        assert list((kafka / "libs").iterdir()) == []
        return result.output

    assert "`make build`" in installed(), "the package has no jar yet"
    write_jar(package / "_jar" / "quotahost.jar")
    assert "no folder libs" in installed(tmp_path)

    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("shutil.copyfile", full)
    assert "No space left" in installed()
