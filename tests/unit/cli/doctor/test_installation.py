"""``quotahost doctor``: the interpreter that a broker would start, and the version of Kafka."""

import os
import sys
import venv
from pathlib import Path

import pytest

from quotahost.broker.host.probe import attach_library, problems
from quotahost.cli.console import Level
from quotahost.cli.doctor.installation import Interpreter, ask, check_python, check_version
from quotahost.errors import QuotahostError
from quotahost.settings.declaration import PREFIX
from tests.fakes.packages import distribute_quotahost, plant

FACTS = {
    "version": "3.12.4", "executable": "/opt/python", "prefix": "/opt", "free-threaded": "false",
    "libpython": "/opt/lib/libpython3.12.so.1.0", "build": "LDLIBRARY=libpython3.12.so, Py_ENABLE_SHARED=1",
    "jpype1": "1.7.1", "quotahost": "0.1.0", "attach": "/opt/_jar/native/x86_64-linux-gnu/libquotahost.so",
}  # fmt: skip


@pytest.mark.parametrize(
    ("process", "changes", "words"),
    [*(("broker", *each) for each in [
        ({}, []),
        ({"version": "3.11.0"}, []),
        ({"version": "3.14.0rc1"}, []),
        ({"version": "3.10.14"}, ["it is Python 3.10.14; 3.11 or newer is needed"]),
        ({"version": "2.7.18"}, ["it is Python 2.7.18; 3.11 or newer is needed"]),
        ({"version": "3.13.1", "free-threaded": "true"}, ["free-threaded", "name an ordinary build"]),
        ({"libpython": "", "build": "LDLIBRARY=libpython3.12.a, Py_ENABLE_SHARED=0"},
         ["no shared libpython", "Py_ENABLE_SHARED=0", "apt install libpython3.12", "--enable-shared"]),
        ({"quotahost": ""}, ["quotahost is not installed there", "/opt/python -m pip install quotahost==0.1.0"]),
        ({"quotahost": "9.9.9"}, ["it has quotahost 9.9.9, this jar needs 0.1.0", "/opt/python -m pip install"]),
        ({"jpype1": ""}, ["jpype1 is not installed there"]),
        ({"jpype1": "1.6.0"}, ["it has jpype1 1.6.0, this jar needs 1.7.1"]),
        ({"attach": ""}, ["no library for this platform", "linux x86-64 or aarch64", "python.process=child"])]),
     # A process of its own needs no library and no jpype1.
     ("child", {"libpython": "", "attach": "", "jpype1": "", "quotahost": "9.9.9"}, []),
     ("child", {"quotahost": ""}, ["quotahost is not installed"]),
     ("child", {"version": "3.10.1"}, ["3.11 or newer"])],
)  # fmt: skip
def test_an_interpreter_of_no_use_is_told_with_its_remedy(
    process: str, changes: dict[str, str], words: list[str]
) -> None:
    told = ["; ".join(problem) for problem in problems(FACTS | changes, "0.1.0", "1.7.1", process)]
    assert len(told) == bool(words)
    assert [word for word in words if word not in told[0]] == []


def test_the_doctor_shows_what_the_interpreter_says_and_one_that_is_looked_up_is_weak() -> None:
    found = {"named": "python3", "executable": "/opt/python", "version": "3.12.4"}
    (_, weak, *others) = check_python(Interpreter(**found))
    assert (weak.level, weak.remedy) == (Level.WEAK, f"{PREFIX}python.executable=/opt/python")
    assert {each.level for each in others} == {Level.GOOD}
    (*_, wrong) = check_python(Interpreter(**found, problem=("it is old\tname another",)))
    assert (wrong.level, wrong.text) == (Level.WRONG, "it is old")
    assert (
        wrong.remedy
        == f"name another; or, for the one that runs this doctor, {PREFIX}python.executable={sys.executable}"
    )


@pytest.mark.parametrize(
    ("system", "machine", "build", "platform"),
    [
        ("linux", "x86_64", "x86_64-pc-linux-gnu", "x86_64-linux-gnu"),
        ("linux", "x86_64", "x86_64-alpine-linux-musl", "x86_64-linux-musl"),
        ("linux", "aarch64", "aarch64-unknown-linux-gnu", "aarch64-linux-gnu"),
        ("linux", "aarch64", "aarch64-unknown-linux-musl", "aarch64-linux-musl"),
        ("darwin", "x86_64", "x86_64-apple-darwin23", "x86_64-macos"),
        ("darwin", "arm64", "aarch64-apple-darwin23", "aarch64-macos"),
        ("linux", "riscv64", "riscv64-linux-gnu", ""),
    ],
)
def test_there_is_a_library_for_every_platform_that_is_promised(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, build: str, platform: str
) -> None:
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("sysconfig.get_config_var", {"HOST_GNU_TYPE": build}.get)
    found = attach_library(sys.path)
    assert Path(found).parent.name == platform
    assert Path(found).is_file() == bool(platform)


def test_a_program_that_is_no_python_is_an_error(tmp_path: Path) -> None:
    scripts = {
        "can't be run: No such file": None,
        "no working Python 3.11 or newer: no such option": "#!/bin/sh\necho no such option >&2\nexit 2\n",
        "is no Python": "#!/bin/sh\n",
    }
    for number, (words, script) in enumerate(scripts.items()):
        if script:
            (tmp_path / str(number)).write_text(script)
            (tmp_path / str(number)).chmod(0o755)
        with pytest.raises(QuotahostError, match=words):
            ask(str(tmp_path / str(number)))


def test_nothing_in_the_working_directory_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = plant(tmp_path / "cwd")
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setenv("PYTHONPATH", f"{os.pathsep}relative{os.pathsep}{tmp_path}")
    found = ask(sys.executable)
    assert (found.version, found.prefix) == (".".join(map(str, sys.version_info[:3])), sys.prefix)
    path = found.path
    assert ran() == []
    assert path[-1] == str(tmp_path), "its absolute folders are looked in, last"
    assert all(map(os.path.isabs, path))
    assert str(tmp_path / "cwd") not in path


def test_an_environment_has_its_own_packages_and_those_of_pythonpath_and_only_an_interpreter_its_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, bare = tmp_path / "own", tmp_path / "bare"
    for each in (own, bare):
        venv.create(each, with_pip=False)
    (site,) = (own / "lib").glob("python*/site-packages")
    distribute_quotahost(site)
    found = ask(str(own / "bin" / "python"))
    assert (found.quotahost, found.prefix, str(site) in found.path) == ("0.1.0", str(own), True)
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    distribute_quotahost(tmp_path / ".local" / "lib" / name / "site-packages")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ask(str(Path(sys.base_prefix) / "bin" / name)).quotahost == "0.1.0"
    assert ask(str(bare / "bin" / "python")).quotahost == ""
    distribute_quotahost(tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    assert ask(str(bare / "bin" / "python")).quotahost == "0.1.0"


@pytest.mark.parametrize(
    ("versions", "level", "words"),
    [
        (("4.0.0", "4.1.1", "4.2.0", "4.2.1", "4.3.0", "4.3.1"), Level.WEAK, "KAFKA-20746"),
        (("4.2.2", "4.3.2", "4.3.10", "4.4.0"), Level.GOOD, "Kafka 4."),
        (("3.9.1", "4.5.0", "5.0.0"), Level.WEAK, "tried with 4.0 to 4.4 only"),
        (("trunk",), Level.NOTE, ""),  # a folder without a Kafka is no fault
    ],
)
def test_versions_with_the_null_pointer_and_those_that_were_never_tried_are_weak(
    tmp_path: Path, versions: tuple[str, ...], level: Level, words: str
) -> None:
    for version in versions:
        libs = tmp_path / version
        libs.mkdir()
        for jar in (f"kafka-clients-{version}.jar", "kafka_2.13-1.0.0.jar"):
            (libs / jar).touch()
        found = check_version(libs)
        assert (found.level, words in found.text) == (level, True), version
        assert level is Level.NOTE or f"Kafka {version}" in found.text
