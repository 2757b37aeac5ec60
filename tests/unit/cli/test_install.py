"""Tests ``quotahost install`` and ``new``: the files that they write work unchanged, and nothing is left half done."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import EntryPoint
from pathlib import Path

import javaproperties
import pytest

from quotahost.api import Role
from quotahost.cli.new import Kind
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from quotahost.settings.sections import read_section
from tests.unit.cli.commands import CLASS, run, write_jar

# ---- install ----


@pytest.mark.proves("mission.one-jar")
def test_install_puts_the_jar_into_libs_for_older_ones_spares_those_of_others_and_prints_the_properties(
    package: Path, kafka: Path
) -> None:
    jar = write_jar(package, "0.2.0")
    kafka = kafka.rename(kafka.with_name("Kafka's home"))
    libs = kafka / "libs"
    write_jar(libs / "quotahost-0.1.0.jar", "0.1.0")
    installed, other = libs / "quotahost-0.2.0.jar", libs / "quotahost-of-somebody-else.jar"
    installed.write_bytes(b"half a jar")
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("x", "")
    result = run("install", "--kafka-home", kafka)
    assert (result.exit_code, run("install", "--kafka-home", kafka).exit_code) == (0, 0)
    assert sorted(libs.iterdir()) == [installed, other]
    assert (installed.read_bytes(), installed.stat().st_mode & 0o777) == (jar.read_bytes(), 0o644)
    lines = result.output.splitlines()
    told = {f"Installed {installed}", "  instead of quotahost-0.1.0.jar (quotahost 0.1.0)", CLASS.strip()}
    assert told | {f"{PREFIX}python.executable={sys.executable}"} <= set(lines)
    quotahost = str(Path(sys.executable).with_name("quotahost"))
    doctor = [quotahost, "doctor", "server.properties", "--kafka-home", str(kafka)]
    assert shlex.split(lines[-1])[-5:] == doctor, "a shell accepts the printed command as it is"


def test_an_install_that_cannot_be_done_says_why_and_leaves_nothing_behind(
    package: Path, kafka: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def installed(home: Path = kafka, code: int = 1) -> str:
        result = run("install", "--kafka-home", home)
        assert (result.exit_code, list((kafka / "libs").iterdir())) == (code, [])
        return result.output

    assert "`make build`" in installed(), "the package has no jar yet"
    write_jar(package)
    assert "no folder libs" in installed(tmp_path)

    def full(_: Path, copy: Path) -> None:
        copy.write_bytes(b"half a jar")
        raise OSError("No space left on device")

    monkeypatch.setattr("shutil.copyfile", full)
    assert "No space left" in installed(code=2)


# ---- new ----

GIVEN = "my_quotas"


@pytest.fixture(params=Kind)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Kind, Path]:
    folder = tmp_path / "a b" / GIVEN
    done = run("new", request.param, GIVEN, "--directory", folder.parent)
    assert (done.exit_code, f" cd '{folder}' && " in done.output) == (0, True), done.output
    return request.param, folder


def test_its_test_passes(written: tuple[Kind, Path]) -> None:
    folder = written[1]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, " passed" in done.stdout) == (0, True), done.stdout + done.stderr


def test_its_entry_point_is_the_class_of_its_readme(
    written: tuple[Kind, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, folder = written
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    ((group, entries),) = project["entry-points"].items()
    ((name, value),) = entries.items()
    role = Role[kind.name]
    assert (group, name) == (role.group, "my-quotas")
    monkeypatch.syspath_prepend(folder)
    made = EntryPoint(name, value, group).load()
    del sys.modules["my_quotas"]  # otherwise the next test would get this module
    (block,) = re.findall(r"```properties\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    settings = Settings.from_properties(javaproperties.loads(block))
    assert "my-quotas" in str(getattr(settings, role.broker_property.replace(".", "_")))
    assert read_section("my-quotas", settings.plugin["my-quotas"], made.Section)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / GIVEN).mkdir()
    (tmp_path / GIVEN / "my_quotas.py").write_text("mine")
    done = run("new", "supplier", GIVEN, "--directory", tmp_path)
    assert (done.exit_code, "my_quotas exists already; choose another name" in done.output) == (1, True)
    assert [each.name for each in (tmp_path / GIVEN).iterdir()] == ["my_quotas.py"]


@pytest.mark.parametrize("name", [
    "", "My", "a b", "../x", "1st", "a--b", "-a", "ä",
    "class", "none", "json", "quota", "fake-host", "yaml", "static", "load",
])  # fmt: skip
def test_a_name_that_no_module_can_have_or_another_has_is_refused(name: str, tmp_path: Path) -> None:
    done = run("new", "--directory", tmp_path, "supplier", "--", name)
    assert (done.exit_code, "can't be a plugin's name" in done.output) == (1, True)
    assert list(tmp_path.iterdir()) == []


def test_the_wheel_carries_every_file_of_every_example() -> None:
    root = Path(__file__).parents[3]
    packed = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    files = {str(path.relative_to(root)) for name in ("*.py", "*.toml") for path in root.glob(f"examples/*/{name}")}
    assert packed["force-include"] == {file: f"quotahost/{file}" for file in files}
