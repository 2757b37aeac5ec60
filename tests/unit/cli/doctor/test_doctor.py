"""Tests ``quotahost doctor`` and ``plugins``: findings with remedies and without secrets, and what is installed."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from quotahost.api import Role
from quotahost.base.errors import QuotahostError
from quotahost.broker.host.probe import attach_library, problems
from quotahost.cli.console import Level
from quotahost.cli.doctor.doctor import check_client_software
from quotahost.cli.doctor.installation import OURS, Interpreter, ask, check_python, check_version
from quotahost.settings.broker import properties_table
from quotahost.settings.declaration import PREFIX
from tests.fakes.admin_socket import FakeAdminSocket
from tests.fakes.packages import distribute, distribute_quotahost, plant
from tests.unit.cli.commands import CLASS, properties_file, run, told, write_jar
from tests.unit.settings.properties import NAMES

PROVIDED = f"{PREFIX}static.produce=${{file:/etc/rates:produce}}\n"


def doctor(tmp_path: Path, code: int, words: Iterable[str], properties: str, *arguments: object) -> str:
    """The doctor's output on properties and this interpreter; it must end with this code and have these words."""
    return told(code, words, "doctor", properties_file(tmp_path, properties), "--python", sys.executable, *arguments)


def test_nothing_is_wrong_or_weak_with_a_sound_broker(site: Path, package: Path, kafka: Path, tmp_path: Path) -> None:
    write_jar(kafka / "libs" / "quotahost-0.1.0.jar")
    sound = (
        f"{CLASS}{PREFIX}python.executable={sys.executable}\n"
        "listeners=SASL_SSL://:9092\nquota.window.num=2\n"
        f"{PREFIX}static.produce=10M\n{PREFIX}validity=PT5M\n"
    )
    words = ("Nothing is wrong.", "10,000,000 bytes/s (10M)", "300 s", "3,600 s (1h)", "200 %", "unlimited",
             "broker properties", "default", "quotahost-0.1.0.jar, of quotahost 0.1.0 with jpype 1.7.1",
             f"{PREFIX}*  ", *NAMES)  # fmt: skip
    output = doctor(tmp_path, 0, words, sound, "--kafka-home", kafka)
    assert [each for each in ("weak ", "WRONG") if each in output] == []


def test_without_arguments_it_looks_at_its_own_interpreter(site: Path, package: Path, tmp_path: Path) -> None:
    output = told(0, (sys.executable, "name the broker's server.properties"), "doctor")
    assert "\nKafka\n" not in output, "a heading without findings isn't printed"
    told(2, ["none.properties can't be read"], "doctor", tmp_path / "none.properties")


@pytest.mark.parametrize(
    ("properties", "code", "words"),
    [
        ("", 1, [f"{PREFIX}class is not set: this broker does not load quotahost"]),
        (f"{PREFIX}class=io.strimzi.Quotas", 1, [f"{PREFIX}class is io.strimzi.Quotas: this broker does not load"]),
        (f"{PREFIX}class=org.quotahost.MonitoredPythonQuotaCallback", 0, ["Nothing is wrong."]),
        (f"{CLASS}{PREFIX}python.process=child \n", 0, ["Nothing is wrong."]),  # the broker drops the blank, too
        (f"{CLASS}static.produce=1M\nplugin.x.y=1\n", 0,
         ["static.produce has no effect: names of quotahost begin with", "plugin.x.y has no effect: names of "]),
        (f"{CLASS}Client.quota.calback.shadow=all\n", 0, ["Client.quota.calback.shadow has no effect"]),
        (f"{CLASS}{PREFIX}factor.source=snapshots\n{PREFIX}kafka.bootstrp.servers=b:9092\n", 1,
         [f"can't log in as {PREFIX}kafka.* says: No such configuration property: ", "bootstrp.servers"]),
        (f"{CLASS}{PREFIX}static.produc=1\n{PREFIX}validity=30\n", 1,
         [f"did you mean {PREFIX}static.produce?", "write 30s for seconds", "Something is WRONG"]),
        (f"{CLASS}{PREFIX}supplier=statik\n{PREFIX}factor.source=fixed\n{PREFIX}plugin.fixed.factor=2\n", 1,
         ["supplier 'statik': no such plugin is installed; did you mean 'static'", f"{PREFIX}plugin.fixed.factor=2: "]),
        (f"{CLASS}{PREFIX}factor.source=snapshots,local,load\n", 1,
         ["factor.source names snapshots and local, which all say how full the disks are"]),
        (f"{CLASS}listeners=SASL_SSL://:9092\n", 0, ["task broken of acme is broken: ModuleNotFoundError"]),
        (f"{CLASS}{PREFIX}static.excluded.principal.name.list=[red]a[/red]\n", 0, ["[red]a[/red]"]),
        (f"{CLASS}config.providers=file\n{PROVIDED}", 0, [f"{PREFIX}static.produce is not checked: a config provider"]),
        (CLASS + PROVIDED, 1, [f"{PREFIX}static.produce="]),  # without providers Kafka takes the text literally
    ],
    ids=["no class", "another class", "monitored", "a blank", "no prefix", "misspelt prefix", "librdkafka's name",
         "wrong", "wrong plugins", "two sources of disks", "a broken plugin", "markup", "provided", "no provider"],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_remedy_and_ends_with_1(
    site: Path, package: Path, tmp_path: Path, properties: str, code: int, words: list[str]
) -> None:
    distribute(site, "acme", {Role.TASK.group: {"broken": "acme_no_such:Thing"}})  # no property names it
    doctor(tmp_path, code, words, properties)


def test_secrets_are_never_printed(site: Path, package: Path, tmp_path: Path) -> None:
    code = """
        import pydantic
        class plugin:
            class Section(pydantic.BaseModel):
                open_sesame: pydantic.SecretStr | None
                hour: int = 0
                server: str = pydantic.Field("", pattern="^http:[^?]*$")
            def __init__(self, context): pass
    """
    distribute(site, "acme", {Role.SUPPLIER.group: {"mine": "acme_mine:plugin"}}, {"acme_mine": code})
    mine = f"{PREFIX}plugin.mine"
    properties = (
        f"{CLASS}{PREFIX}supplier=mine\n{PREFIX}kafka.sasl.password=S3CR3T-1\n{mine}.open-sesame=S3CR3T-2\n{mine}.hour="
    )
    misplaced = f"22\n{mine}.open-sezame=S3CR3T-4\n{mine}.server=http://me:S3CR3T-5@host/?S3CR3T-6"
    shown = ("plugin.mine.open-sesame ", "***")
    hours = enumerate(("22", "late"))
    outputs = [doctor(tmp_path, late, (*shown, f" {hour} "), properties + hour) for late, hour in hours]
    outputs.append(doctor(tmp_path, 1, [f"{PREFIX}plugin.mine.server=http://***@host/?***: "], properties + misplaced))
    broken = properties_file(tmp_path, "ssl.key.password=abc\\uS3CR3T-3\n")
    outputs.append(told(2, ["it is not a properties file"], "doctor", broken))
    assert not [output for output in outputs if "S3CR" in output]


@pytest.mark.parametrize(
    ("jars_there", "words"),
    [
        ([], "no jar of quotahost in"),
        ([("0.1.0", "1.7.1"), ("0.0.9", "1.7.1")], "more than one jar of quotahost in"),
        ([("0.0.9", "1.7.1")], "the jar needs quotahost 0.0.9, installed is 0.1.0"),
        ([("0.1.0", "1.6.0")], "the jar needs jpype1 1.6.0, installed is 1.7.1"),
    ],
)
def test_there_must_be_exactly_one_jar_of_the_installed_versions(
    site: Path, kafka: Path, tmp_path: Path, jars_there: list[tuple[str, str]], words: str
) -> None:
    for version, jpype in jars_there:
        write_jar(kafka / "libs" / f"quotahost-{version}.jar", version, jpype)
    doctor(tmp_path, 1, (words, "quotahost install --kafka-home ", str(kafka)), CLASS, "--kafka-home", kafka)


def environment(tmp_path: Path, *libraries: str) -> Path:
    """The Python of another environment, which has these folders on its path."""
    other = tmp_path / "other"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", other], check=True)
    (next((other / "lib").glob("python3*/site-packages")) / "all.pth").write_text("\n".join(libraries))
    return other / "bin" / "python"


@pytest.mark.proves("faults.planted")
def test_nothing_in_the_working_directory_runs_in_another_environment_whose_own_doctor_is_named(
    site: Path, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = environment(tmp_path, *(path for path in sys.path if path and Path(path).is_dir()))
    ran = plant(tmp_path / "cwd")
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.environ["PYTHONPATH"], "", ".", str(tmp_path)]))
    words = (f"ok    {python}", f"run its own doctor: {python.with_name('quotahost')} doctor")
    told(0, words, "doctor", properties_file(tmp_path, f"{CLASS}{PREFIX}python.executable={python}\n"))
    assert ran() == []


def test_an_environment_without_quotahost_or_with_half_of_it_is_wrong(tmp_path: Path) -> None:
    python = environment(tmp_path, str(tmp_path))
    file = properties_file(tmp_path, f"{CLASS}{PREFIX}python.executable={python}\n{PREFIX}python.process=child\n")
    assert "its own doctor" not in told(1, ["quotahost is not installed there"], "doctor", file)
    distribute_quotahost(tmp_path)
    told(1, ["its quotahost can't be imported: ModuleNotFoundError: No module named 'quotahost'"], "doctor", file)


def test_a_link_to_this_environment_is_no_other_one(site: Path, package: Path, tmp_path: Path) -> None:
    (tmp_path / "current").symlink_to(sys.prefix)  # docs/operate.md has such a link for upgrades without a restart
    names = f"{PREFIX}python.executable={tmp_path}/current/bin/{Path(sys.executable).name}\n"
    file = properties_file(tmp_path, CLASS + names)
    assert "its own doctor" not in told(0, ["supplier       static"], "doctor", file)


def script(path: Path, lines: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return path


@pytest.mark.proves("faults.planted")
def test_java_is_run_far_from_the_working_directory_and_without_options_of_the_environment(
    site: Path, package: Path, kafka: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    script(tmp_path / "bin" / "java", f"(pwd; env) >> '{seen}'\necho end")
    write_jar(kafka / "libs" / "quotahost-0.1.0.jar")
    monkeypatch.chdir(tmp_path)
    for name, value in {"JAVA_HOME": ".", "JAVA_TOOL_OPTIONS": "@evil", "CLASSPATH": "."}.items():
        monkeypatch.setenv(name, value)
    told(0, ["it has all internals that quotahost uses"], "doctor", "--kafka-home", "kafka")
    where, *variables = seen.read_text().splitlines()
    assert where == "/"
    assert [line for line in variables if line.startswith(("JAVA_TOOL_OPTIONS", "CLASSPATH"))] == []


def test_plugins_properties_and_the_version_are_listed(site: Path, package: Path, tmp_path: Path) -> None:
    broken = {Role.POLICY.group: {"broken": "acme_no_such:Thing"}}
    distribute(site, "acme", broken, version="2.3")
    rows = [line.split() for line in told(0, (), "plugins").splitlines()]
    assert ["supplier", "static", "quotahost", "0.1.0", "ok"] in rows
    assert ["factor", "source", "fixed", "quotahost", "0.1.0", "ok"] in rows
    assert ["policy", "broken", "acme", "2.3", "ModuleNotFoundError:"] in [row[:5] for row in rows]
    distribute(site, "one", {"quotahost.policy": {"lost": "lost:It"}})
    doctor(tmp_path, 0, ["group of quotahost; did you mean quotahost.policies?", "fix or uninstall"], CLASS)
    assert run("properties").output == properties_table()
    assert run("--version").output == "0.1.0\n"
    assert re.search(r"│ properties +\w", run("--help").output)


def test_libraries_that_give_up_early_are_named_and_brokers_that_do_not_answer(broker: FakeAdminSocket) -> None:
    for connections, words in ((3, ["3 connections use sarama"]), (0, [])):
        gauges = [["ImpatientClients", "sarama", "Connections", connections], ["Fence", "", "Closed", "0.0"]]
        broker.answers["gauges"] = gauges
        assert [each.text.partition(",")[0] for each in check_client_software()] == words
    del broker.answers["gauges"]
    first, *_ = check_client_software()
    assert (first.level, "broker 1" in first.text) == (Level.NOTE, True)
    assert ("\n" in first.text, first.remedy) == (False, "see whether it still runs, and what its log says")
    broker.close()
    assert [finding.level for finding in check_client_software()] == [Level.NOTE]


# ---- the interpreter that a broker would start, and the version of Kafka ----

FACTS = {
    "version": "3.12.4", "executable": "/opt/python", "prefix": "/opt", "free-threaded": "false",
    "libpython": "/opt/lib/libpython3.12.so.1.0", "build": "LDLIBRARY=libpython3.12.so, Py_ENABLE_SHARED=1",
    "jpype1": "1.7.1", "quotahost": "0.1.0", "attach": "/opt/_jar/native/x86_64-linux-gnu/libquotahost.so",
}  # fmt: skip


@pytest.mark.parametrize(
    ("process", "changes", "words"),
    [*(("broker", *each) for each in [
        ({}, []),
        ({"version": "3.14.0rc1"}, []),
        ({"version": "3.10.14"}, ["it is Python 3.10.14; 3.11 or newer is needed"]),
        ({"version": "3.13.1", "free-threaded": "true"}, ["free-threaded", "name an ordinary build"]),
        ({"libpython": "", "build": "LDLIBRARY=libpython3.12.a, Py_ENABLE_SHARED=0"},
         ["no shared libpython", "Py_ENABLE_SHARED=0", "apt install libpython3.12", "--enable-shared"]),
        ({"quotahost": ""}, ["quotahost is not installed there", " -m pip install quotahost-0.1.0-py3-none-any.whl"]),
        ({"quotahost": "9.9.9"}, ["it has quotahost 9.9.9, this jar needs 0.1.0",
                                  "its own jar into Kafka's libs (`quotahost install`), or /opt/python -m"]),
        ({"jpype1": ""}, ["jpype1 is not installed there"]),
        ({"jpype1": "1.6.0"}, ["it has jpype1 1.6.0, this jar needs 1.7.1"]),
        ({"attach": ""}, ["no library for this platform", "linux x86-64 or aarch64", "python.process=child"])]),
     # Python in a child process needs no library and no jpype1.
     ("child", {"libpython": "", "attach": "", "jpype1": "", "quotahost": "9.9.9"}, []),
     ("child", {"quotahost": ""}, ["quotahost is not installed"])],
)  # fmt: skip
def test_a_useless_interpreter_is_told_with_its_remedy(process: str, changes: dict[str, str], words: list[str]) -> None:
    told = ["; ".join(problem) for problem in problems(FACTS | changes, "0.1.0", "1.7.1", process)]
    assert len(told) == bool(words)
    assert [word for word in words if word not in told[0]] == []


def test_the_doctor_shows_what_the_interpreter_says_and_one_that_is_looked_up_is_weak() -> None:
    found = {"named": "python3", "executable": "/opt/python", "version": "3.12.4"}
    (_, weak, *others) = check_python(Interpreter(**found))
    assert (weak.level, weak.remedy) == (Level.WEAK, f"{PREFIX}python.executable=/opt/python")
    assert {each.level for each in others} == {Level.GOOD}
    (*_, wrong) = check_python(Interpreter(**found, problem=("it is old\tname another",)))
    remedy = f"name another; or, to use the Python that runs this doctor, {OURS}"
    assert (wrong.level, wrong.text, wrong.remedy) == (Level.WRONG, "it is old", remedy)


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
    refused = script(tmp_path / "refused", "echo no such option >&2\nexit 2")
    silent = script(tmp_path / "silent", "")
    command = script(tmp_path / "quotahost", "echo '│ No such option: -I │' >&2\necho '╰────╯' >&2\nexit 2")
    for path, words in {
        tmp_path / "none": "can't be run: No such file",
        refused: "not a working Python 3.11 or newer: no such option",
        silent: "not a working Python 3.11 or newer: no message",
        command: "not a working Python 3.11 or newer: No such option: -I$",
    }.items():
        with pytest.raises(QuotahostError, match=words):
            ask(str(path))


def test_an_environment_has_the_packages_of_pythonpath_and_only_an_interpreter_its_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = environment(tmp_path)
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    distribute_quotahost(tmp_path / ".local" / "lib" / name / "site-packages")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ask(str(Path(sys.base_prefix) / "bin" / name)).quotahost == "0.1.0"
    assert ask(str(bare)).quotahost == ""
    distribute_quotahost(tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    assert ask(str(bare)).quotahost == "0.1.0"
    (tmp_path / "site" / "quotahost-0.1.0.dist-info" / "METADATA").write_text("")  # without the right it seems empty
    assert ask(str(bare)).quotahost == "in files that this user can't read"


@pytest.mark.parametrize(
    ("version", "level"),
    [
        *((version, Level.GOOD) for version in ("4.0.0", "4.3.10", "4.4.0")),
        *((version, Level.WEAK) for version in ("3.9.1", "4.5.0", "5.0.0")),
        ("trunk", Level.NOTE),  # a folder without a Kafka is no fault
    ],
)
def test_a_version_that_was_never_tried_is_weak(kafka: Path, version: str, level: Level) -> None:
    for jar in (f"kafka-clients-{version}.jar", "kafka_2.13-1.0.0.jar"):
        (kafka / "libs" / jar).touch()
    found = check_version(kafka)
    words = {Level.GOOD: f"Kafka {version}", Level.WEAK: f"Kafka {version}: quotahost was tested with 4.0 to 4.4 only"}
    assert (found.level, words.get(level, "Kafka's version is not known") in found.text) == (level, True)
