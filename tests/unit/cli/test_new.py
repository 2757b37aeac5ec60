"""``quotahost new``: what it writes passes its own test, and the project's own lint and types, as it stands."""

import importlib
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import javaproperties
import pytest

from quotahost.cli.new import Kind
from quotahost.settings.broker import Settings
from quotahost.settings.sections import read_section
from tests.unit.cli.commands import run

# As in a project of the author's own, whose lines have this project's width.
RUFF = ("--isolated", "--no-cache", "--line-length", "120", "--target-version", "py311")
GIVEN = "my_quotas"


@pytest.fixture(params=Kind)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Kind, Path]:
    done = run("new", request.param, GIVEN, "--directory", tmp_path)
    assert done.exit_code == 0, done.output
    return request.param, tmp_path / GIVEN


def tool(folder: Path, *command: str) -> str:
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_own_test_passes(written: tuple[Kind, Path]) -> None:
    assert " passed" in tool(written[1], "pytest", "-q", "-p", "no:cacheprovider")


@pytest.fixture(scope="module")
def types_of_libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


def test_lint_format_and_strict_types_pass(written: tuple[Kind, Path], types_of_libraries: Path) -> None:
    folder = written[1]
    tool(folder, "ruff", "check", *RUFF, "--select", "E,F,W,I,B,UP,SIM,C4,RET,RUF,PTH,PT", ".")
    tool(folder, "ruff", "format", *RUFF, "--check", ".")
    tool(folder, "mypy", "--strict", "--cache-dir", str(types_of_libraries), "my_quotas.py", "test_my_quotas.py")


def test_its_entry_point_is_the_class(written: tuple[Kind, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    kind, folder = written
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    ((group, entries),) = project["entry-points"].items()
    assert group == kind.role.group
    ((name, value),) = entries.items()
    assert name == "my-quotas"
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "my_quotas", raising=False)
    assert isinstance(EntryPoint(name, value, group).load(), type)
    monkeypatch.delitem(sys.modules, "my_quotas")
    assert f"client.quota.callback.{kind.role.broker_property}=my-quotas" in (folder / "README.md").read_text()


def test_the_properties_of_its_readme_are_right(written: tuple[Kind, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    kind, folder = written
    (block,) = re.findall(r"```properties\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    settings = Settings.from_properties(javaproperties.loads(block))
    assert "my-quotas" in str(getattr(settings, kind.role.broker_property.replace(".", "_")))
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "my_quotas", raising=False)
    section = importlib.import_module("my_quotas").MyQuotas.Section
    assert read_section("my-quotas", settings.plugin["my-quotas"], section)
    monkeypatch.delitem(sys.modules, "my_quotas")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / GIVEN).mkdir()
    (tmp_path / GIVEN / "my_quotas.py").write_text("mine")
    done = run("new", "supplier", GIVEN, "--directory", tmp_path)
    assert done.exit_code == 1
    assert "my_quotas can't be written" in done.output
    assert [each.name for each in (tmp_path / GIVEN).iterdir()] == ["my_quotas.py"]


@pytest.mark.parametrize("name", ["", "My", "a b", "../up", "1st", "a--b", "-a", "class", "json", "quotahost", "ä"])
def test_a_name_that_no_module_can_have_is_refused(name: str, tmp_path: Path) -> None:
    done = run("new", "--directory", tmp_path, "supplier", "--", name)
    assert done.exit_code == 1
    assert "can't be a plugin's name" in done.output
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_a_plugin_of_the_role_has_is_refused(tmp_path: Path) -> None:
    done = run("new", "supplier", "static", "--directory", tmp_path)
    assert (done.exit_code, "there is a supplier static already" in done.output) == (1, True)
    assert run("new", "task", "static", "--directory", tmp_path).exit_code == 0


def test_the_wheel_carries_every_file_of_every_example() -> None:
    root = Path(__file__).parents[3]
    packed = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    files = {str(path.relative_to(root)) for name in ("*.py", "*.toml") for path in root.glob(f"examples/*/{name}")}
    assert packed["force-include"] == {file: f"quotahost/{file}" for file in files}
