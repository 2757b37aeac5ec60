"""``quotahost doctor`` and ``plugins``: findings, each with its remedy, and no secret among them."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from quotahost.api import Role
from quotahost.cli.console import Level
from quotahost.cli.doctor import installation
from quotahost.cli.doctor.doctor import check_client_software
from quotahost.settings.broker import properties_table
from quotahost.settings.declaration import PREFIX
from tests.fakes.admin_socket import FakeAdminSocket
from tests.fakes.packages import distribute, plant
from tests.unit.cli.commands import CLASS, properties_file, run, told, write_jar

PROVIDED = f"{PREFIX}static.produce=${{file:/etc/rates:produce}}\n"


def doctor(tmp_path: Path, code: int, words: Iterable[str], properties: str, *arguments: object) -> str:
    """What the doctor says of properties and of this interpreter, which ends with this code and has these words."""
    return told(code, words, "doctor", properties_file(tmp_path, properties), "--python", sys.executable, *arguments)


def test_nothing_is_wrong_or_weak_with_a_sound_broker(site: Path, package: Path, kafka: Path, tmp_path: Path) -> None:
    write_jar(kafka / "libs" / "quotahost-0.1.0.jar")
    sound = (
        f"{CLASS}{PREFIX}python.executable={sys.executable}\n"
        "listeners=SASL_SSL://:9092\nquota.window.num=2\n"
        f"{PREFIX}static.produce=10M\n{PREFIX}validity=PT5M\n"
    )
    words = ("Nothing is wrong.", "10,000,000 bytes/s (10M)", "300 s",
             "quotahost-0.1.0.jar, of quotahost 0.1.0 with jpype 1.7.1")  # fmt: skip
    output = doctor(tmp_path, 0, words, sound, "--kafka-home", kafka)
    assert [each for each in ("weak ", "WRONG") if each in output] == []


def test_without_arguments_it_looks_at_its_own_interpreter(site: Path, package: Path, tmp_path: Path) -> None:
    told(0, (sys.executable, "name the broker's server.properties"), "doctor")
    told(1, ["none.properties can't be read"], "doctor", tmp_path / "none.properties")


@pytest.mark.parametrize(
    ("properties", "code", "words"),
    [
        ("", 1, [f"{PREFIX}class is not set: this broker does not load quotahost"]),
        (f"{PREFIX}class=io.strimzi.Quotas", 1, [f"{PREFIX}class is io.strimzi.Quotas: this broker does not load"]),
        (f"{PREFIX}class=org.quotahost.MonitoredPythonQuotaCallback", 0, ["Nothing is wrong."]),
        (f"{CLASS}{PREFIX}static.produc=1\n{PREFIX}validity=30\n", 1,
         [f"did you mean {PREFIX}static.produce?", "write 30s for seconds", "Something is WRONG"]),
        (f"{CLASS}{PREFIX}supplier=statik\n{PREFIX}factor.source=fixed\n{PREFIX}plugin.fixed.factor=2\n", 1,
         ["supplier 'statik': there is none; did you mean 'static'?", f"{PREFIX}plugin.fixed.factor=2: "]),
        (f"{CLASS}listeners=SASL_SSL://:9092\n", 0, ["task broken of acme is broken: ModuleNotFoundError"]),
        (f"{CLASS}{PREFIX}static.excluded.principal.name.list=[red]a[/red]\n", 0, ["[red]a[/red]"]),
        (f"{CLASS}config.providers=file\n{PROVIDED}", 0, [f"{PREFIX}static.produce is not checked: a config provider"]),
        (CLASS + PROVIDED, 1, [f"{PREFIX}static.produce="]),  # without providers Kafka takes it as it is written
    ],
    ids=["no class", "another class", "monitored", "wrong", "wrong plugins", "a broken plugin", "markup", "provided",
         "no provider"],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_remedy_and_ends_with_1(
    site: Path, package: Path, tmp_path: Path, properties: str, code: int, words: list[str]
) -> None:
    distribute(site, "acme", {Role.TASK.group: {"broken": "acme_no_such:Thing"}})  # which is not configured
    doctor(tmp_path, code, words, properties)


def test_secrets_are_never_printed(site: Path, package: Path, tmp_path: Path) -> None:
    code = """
        import pydantic
        class plugin:
            class Section(pydantic.BaseModel):
                open_sesame: pydantic.SecretStr
                hour: int = 0
                server: str = pydantic.Field("", pattern="^http:[^?]*$")
    """
    distribute(site, "acme", {Role.SUPPLIER.group: {"mine": "acme_mine:plugin"}}, {"acme_mine": code})
    properties = (
        f"{CLASS}{PREFIX}supplier=mine\n{PREFIX}kafka.sasl.password=S3CR3T-1\n"
        f"{PREFIX}plugin.mine.open-sesame=S3CR3T-2\n{PREFIX}plugin.mine.hour="
    )
    misplaced = (
        f"22\n{PREFIX}plugin.mine.open-sezame=S3CR3T-4\n{PREFIX}plugin.mine.server=http://me:S3CR3T-5@host/?S3CR3T-6"
    )
    shown = (f"{PREFIX}plugin.mine.open-sesame", "***")
    outputs = [doctor(tmp_path, late, shown, properties + hour) for late, hour in enumerate(("22", "late"))]
    outputs.append(doctor(tmp_path, 1, [f"{PREFIX}plugin.mine.server=http://***@host/?***: "], properties + misplaced))
    broken = properties_file(tmp_path, "ssl.key.password=abc\\uS3CR3T-3\n")
    outputs.append(told(1, ["it is no properties file"], "doctor", broken))
    assert not [output for output in outputs if "S3CR" in output]


@pytest.mark.parametrize(
    ("jars_there", "words"),
    [
        ([], "no jar of quotahost's in"),
        ([("0.1.0", "1.7.1"), ("0.0.9", "1.7.1")], "more than one jar of quotahost's"),
        ([("0.0.9", "1.7.1")], "the jar needs quotahost 0.0.9, installed is 0.1.0"),
        ([("0.1.0", "1.6.0")], "the jar needs jpype1 1.6.0, installed is 1.7.1"),
    ],
)
def test_there_must_be_exactly_one_jar_of_the_installed_versions(
    site: Path, kafka: Path, tmp_path: Path, jars_there: list[tuple[str, str]], words: str
) -> None:
    for version, jpype in jars_there:
        write_jar(kafka / "libs" / f"quotahost-{version}.jar", version, jpype)
    doctor(tmp_path, 1, (words, f"quotahost install --kafka-home {kafka}"), CLASS, "--kafka-home", kafka)


def environment(tmp_path: Path, *libraries: str) -> Path:
    """The Python of another environment, which also looks into these folders."""
    other = tmp_path / "other"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", other], check=True)
    (next((other / "lib").glob("python3*/site-packages")) / "all.pth").write_text("\n".join(libraries))
    return other / "bin" / "python"


@pytest.mark.proves("faults.planted")
def test_nothing_in_the_working_directory_runs_in_the_doctor_of_another_environment(
    site: Path, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """And its own quotahost finds its plugins."""
    distribute(site, "acme", {Role.SUPPLIER.group: {"theirs": "builtins:print"}})
    python = environment(tmp_path, *(path for path in sys.path if path and Path(path).is_dir()))
    lines = f"{CLASS}{PREFIX}python.executable={python}\n{PREFIX}supplier=theirs\n"
    ran = plant(tmp_path / "cwd")
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setenv("PYTHONPATH", f"{os.environ['PYTHONPATH']}{os.pathsep}{os.pathsep}.")
    result = run("doctor", properties_file(tmp_path, lines))
    printed = capfd.readouterr().out
    assert (result.exit_code, ran()) == (0, []), printed
    assert f"ok    {python}" in printed
    assert "theirs" in printed


def script(path: Path, lines: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return path


def test_a_doctor_that_hangs_is_given_up(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = "echo version=3.11.0; echo prefix=/other; echo executable=$0; echo quotahost=0.1.0"
    other = script(tmp_path / "python", f"case $* in *--here*) exec sleep 600;; esac; {facts}")
    monkeypatch.setattr(installation, "_DOCTOR_TIMEOUT", 0.2)
    told(1, ["did not end within"], "doctor", "--python", other)


@pytest.mark.proves("faults.planted")
def test_java_is_run_far_from_the_working_directory_and_without_options_of_the_environment(
    site: Path, package: Path, kafka: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    script(tmp_path / "bin" / "java", f"(pwd; env) >> {seen}\necho 'openjdk version \"25.0.5\"' >&2; echo end")
    write_jar(kafka / "libs" / "quotahost-0.1.0.jar")
    monkeypatch.chdir(tmp_path)
    for name, value in {"JAVA_HOME": ".", "JAVA_TOOL_OPTIONS": "@evil", "CLASSPATH": "."}.items():
        monkeypatch.setenv(name, value)
    words = ("it has all that quotahost uses of it", "--enable-native-access=ALL-UNNAMED",
             "Java 25 warns at the broker's start that native code is loaded")  # fmt: skip
    told(0, words, "doctor", "--kafka-home", "kafka")
    where, *variables = seen.read_text().splitlines()
    assert where == "/"
    assert [line for line in variables if line.startswith(("JAVA_TOOL_OPTIONS", "CLASSPATH"))] == []


def test_another_environment_without_quotahost_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    properties = properties_file(tmp_path, f"{CLASS}{PREFIX}static.produce=10M\n")
    words = ("quotahost is not installed there", f"{PREFIX}python.executable={sys.executable}",
             "10,000,000 bytes/s (10M)")  # fmt: skip
    told(1, words, "doctor", properties, "--python", environment(tmp_path))


def test_plugins_properties_and_the_version_are_listed(site: Path) -> None:
    broken = {Role.POLICY.group: {"broken": "acme_no_such:Thing"}}
    distribute(site, "acme", broken, version="2.3")
    rows = [line.split() for line in told(0, (), "plugins").splitlines()]
    assert ["supplier", "static", "quotahost", "0.1.0", "ok"] in rows
    assert ["factor", "source", "fixed", "quotahost", "0.1.0", "ok"] in rows
    assert ["policy", "broken", "acme", "2.3", "ModuleNotFoundError:"] in [row[:5] for row in rows]
    assert run("properties").output == properties_table()
    assert run("--version").output == "0.1.0\n"
    assert re.search(r"│ properties +\w", run("--help").output)


def test_libraries_that_give_up_early_are_named_and_brokers_that_do_not_answer(broker: FakeAdminSocket) -> None:
    for connections, level in ((3, Level.WEAK), (0, Level.GOOD)):
        gauges = [["ImpatientClients", "sarama", "Connections", connections], ["Fence", "", "Closed", "0.0"]]
        broker.answers["gauges"] = gauges
        (finding,) = check_client_software()
        assert finding.level is level
        assert level is Level.GOOD or finding.text.startswith("3 connections use sarama")
    for odd in (7, [["ImpatientClients", "sarama"]], [["ImpatientClients", ["sarama"], "Connections", "many"]]):
        broker.answers["gauges"] = odd
        (finding,) = check_client_software()
        assert (finding.level, "isn't of this version" in finding.text) == (Level.NOTE, True)
    del broker.answers["gauges"]
    first, *_ = check_client_software()
    assert (first.level, "broker 1" in first.text) == (Level.NOTE, True)
    broker.close()
    assert [finding.level for finding in check_client_software()] == [Level.NOTE]
