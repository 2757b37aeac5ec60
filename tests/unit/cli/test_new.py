"""``quotahost new``: what it writes passes its own test, and the project's own lint and types, as it stands."""

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


def test_its_own_test_lint_format_and_strict_types_pass(
    written: tuple[Kind, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, cache = written[1], tmp_path_factory.getbasetemp() / "mypy"  # with the libraries' types, for all roles
    assert " passed" in tool(folder, "pytest", "-q", "-p", "no:cacheprovider")
    tool(folder, "ruff", "check", *RUFF, "--select", "E,F,W,I,B,UP,SIM,C4,RET,RUF,PTH,PT", ".")
    tool(folder, "ruff", "format", *RUFF, "--check", ".")
    tool(folder, "mypy", "--strict", "--cache-dir", str(cache), "my_quotas.py", "test_my_quotas.py")


def test_its_entry_point_is_the_class_and_its_readme_names_it_with_its_properties(
    written: tuple[Kind, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, folder = written
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    ((group, entries),) = project["entry-points"].items()
    ((name, value),) = entries.items()
    assert (group, name) == (kind.role.group, "my-quotas")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "my_quotas", raising=False)
    made = EntryPoint(name, value, group).load()
    monkeypatch.delitem(sys.modules, "my_quotas")
    (block,) = re.findall(r"```properties\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    settings = Settings.from_properties(javaproperties.loads(block))
    assert "my-quotas" in str(getattr(settings, kind.role.broker_property.replace(".", "_")))
    assert read_section("my-quotas", settings.plugin["my-quotas"], made.Section)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / GIVEN).mkdir()
    (tmp_path / GIVEN / "my_quotas.py").write_text("mine")
    done = run("new", "supplier", GIVEN, "--directory", tmp_path)
    assert done.exit_code == 1
    assert "my_quotas can't be written: File exists\n" in done.stderr
    assert [each.name for each in (tmp_path / GIVEN).iterdir()] == ["my_quotas.py"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        *((name, "can't be a plugin's name") for name in (
            "", "My", "a b", "../up", "1st", "a--b", "-a", "class", "json", "quotahost", "ä")),
        ("static", "there is a supplier static already"),
    ],
)  # fmt: skip
def test_a_name_that_no_module_can_have_or_a_plugin_of_the_role_has_is_refused(
    name: str, words: str, tmp_path: Path
) -> None:
    done = run("new", "--directory", tmp_path, "supplier", "--", name)
    assert (done.exit_code, words in done.output) == (1, True)
    assert list(tmp_path.iterdir()) == []
    assert name != "static" or run("new", "task", name, "--directory", tmp_path).exit_code == 0


def test_the_wheel_carries_every_file_of_every_example() -> None:
    root = Path(__file__).parents[3]
    packed = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    files = {str(path.relative_to(root)) for name in ("*.py", "*.toml") for path in root.glob(f"examples/*/{name}")}
    assert packed["force-include"] == {file: f"quotahost/{file}" for file in files}
