from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from quotahost.cli import jars
from quotahost.cli.broker_file import BrokerFile, read_broker_file
from quotahost.cli.check_python import check_python
from quotahost.cli.check_weak import check_weak
from quotahost.cli.interpreter import Interpreter, InterpreterError, ask
from quotahost.cli.listeners import unauthenticated
from quotahost.cli.main import app
from quotahost.cli.report import Level, Section
from quotahost.discovery import GROUPS
from quotahost.settings import PREFIX, Settings, properties_table
from tests.unit.fake_packages import distribute, distribute_quotahost

PLUGIN_FOLDER = Path(jars.__file__).parents[2]
CLASS = f"{PREFIX}class=org.quotahost.PythonQuotaCallback\n"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where quotahost 0.1.0 and jpype1 1.6.0 are installed, for this process and those that it starts."""
    folder = tmp_path / "site"
    distribute_quotahost(folder)
    distribute(folder, "jpype1", {}, version="1.6.0")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (folder, PLUGIN_FOLDER))))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a quotahost that carries no jar yet."""
    folder = tmp_path / "package"
    (folder / "_jar").mkdir(parents=True)
    monkeypatch.setattr(jars, "files", lambda _: folder)
    return folder


@pytest.fixture
def kafka(tmp_path: Path) -> Path:
    home = tmp_path / "kafka"
    (home / "libs").mkdir(parents=True)
    return home


def write_jar(path: Path, quotahost: str = "0.1.0", jpype: str = "1.6.0") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        versions = f"# built\nquotahost={quotahost}\njpype={jpype}\n"
        archive.writestr("META-INF/quotahost/versions.properties", versions)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def doctor(tmp_path: Path, properties: str, *arguments: object) -> Result:
    path = tmp_path / "server.properties"
    path.write_text(properties)
    return run("doctor", path, "--python", sys.executable, *arguments)


# ---- plugins, properties ----


def test_plugins_lists_each_role_s_plugins_with_their_state(site: Path) -> None:
    broken = {GROUPS["policy"]: {"broken": "acme_no_such:Thing"}}
    distribute(site, "acme", broken, version="2.3")

    result = run("plugins")

    assert result.exit_code == 0
    rows = [line.split() for line in result.output.splitlines()]
    assert ["supplier", "static", "quotahost", "0.1.0", "ok"] in rows
    assert ["factor", "source", "fixed", "quotahost", "0.1.0", "ok"] in rows
    assert next(row for row in rows if "broken" in row)[:5] == [
        "policy",
        "broken",
        "acme",
        "2.3",
        "ModuleNotFoundError:",
    ]


def test_properties_prints_the_generated_table_or_renews_it_in_a_file(tmp_path: Path) -> None:
    assert run("properties").output == properties_table()

    readme = tmp_path / "README.md"
    readme.write_text("# T\n<!-- properties -->\n<!-- /properties -->\n")
    assert run("properties", "--into", readme).exit_code == 0
    assert properties_table() in readme.read_text()


def test_the_version_is_that_of_the_distribution(site: Path) -> None:
    assert run("--version").output == "0.1.0\n"


# ---- install ----


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
    assert sorted(path.name for path in libs.iterdir()) == [
        "quotahost-0.2.0.jar",
        "quotahost-of-somebody-else.jar",
    ]
    assert jars.jars_in(libs) == [jars.Jar(libs / "quotahost-0.2.0.jar", "0.2.0", "1.6.0")]
    assert "instead of quotahost-0.1.0.jar (quotahost 0.1.0)" in result.output


def test_install_without_a_jar_in_the_package_says_how_to_get_one(package: Path, kafka: Path) -> None:
    result = run("install", "--kafka-home", kafka)
    assert result.exit_code == 1
    assert "`make build`" in result.output
    assert list((kafka / "libs").iterdir()) == []


def test_install_into_what_is_no_kafka_is_refused(package: Path, tmp_path: Path) -> None:
    write_jar(package / "_jar" / "quotahost.jar")
    result = run("install", "--kafka-home", tmp_path)
    assert result.exit_code == 1
    assert "no folder libs" in result.output


def test_a_failed_copy_leaves_nothing_behind(
    package: Path, kafka: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_jar(package / "_jar" / "quotahost.jar")

    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", full)
    result = run("install", "--kafka-home", kafka)
    assert result.exit_code == 1
    assert "No space left" in result.output
    assert list((kafka / "libs").iterdir()) == []


# ---- doctor ----


def test_a_sound_broker_is_called_so(site: Path, package: Path, kafka: Path, tmp_path: Path) -> None:
    write_jar(kafka / "libs" / "quotahost-0.1.0.jar")
    sound = (
        f"{CLASS}{PREFIX}python.executable={sys.executable}\n"
        "listeners=SASL_SSL://:9092\n"
        f"{PREFIX}static.produce=10M\n{PREFIX}validity=PT5M\n"
    )

    result = doctor(tmp_path, sound, "--kafka-home", kafka)

    assert result.exit_code == 0, result.output
    assert "Nothing is wrong." in result.output
    assert "weak " not in result.output
    assert "WRONG" not in result.output
    assert "10,000,000 bytes/s (10M)" in result.output
    assert "300 s" in result.output
    assert "quotahost-0.1.0.jar, of quotahost 0.1.0 with jpype 1.6.0" in result.output


def test_without_arguments_doctor_looks_at_its_own_interpreter(site: Path, package: Path) -> None:
    result = run("doctor")
    assert result.exit_code == 0, result.output
    assert sys.executable in result.output
    assert "name the broker's server.properties" in result.output


def test_what_is_wrong_with_the_properties_is_told_and_ends_with_1(
    site: Path, package: Path, tmp_path: Path
) -> None:
    result = doctor(tmp_path, f"{CLASS}{PREFIX}static.produc=1\n{PREFIX}validity=30\n")
    assert result.exit_code == 1
    assert f"did you mean {PREFIX}static.produce?" in result.output
    assert "write 30s for seconds" in result.output
    assert "Something is WRONG" in result.output


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", f"{PREFIX}class is not set"),
        (f"{PREFIX}class=io.strimzi.Quotas", f"{PREFIX}class is io.strimzi.Quotas"),
    ],
)
def test_a_broker_that_would_not_load_quotahost_is_wrong(
    site: Path, package: Path, tmp_path: Path, line: str, words: str
) -> None:
    result = doctor(tmp_path, line)
    assert result.exit_code == 1
    assert f"{words}: this broker does not load quotahost" in result.output


def test_configured_plugins_that_fail_or_refuse_their_settings_are_wrong(
    site: Path, package: Path, tmp_path: Path
) -> None:
    factor = f"{PREFIX}factor.source=fixed\n{PREFIX}plugin.fixed.factor=2\n"
    result = doctor(tmp_path, f"{CLASS}{PREFIX}supplier=statik\n{factor}")
    assert result.exit_code == 1
    assert "supplier 'statik': there is none; did you mean 'static'?" in result.output
    assert f"{PREFIX}plugin.fixed.factor=2: " in result.output


def test_a_broken_plugin_that_is_not_configured_is_only_weak(
    site: Path, package: Path, tmp_path: Path
) -> None:
    distribute(site, "acme", {GROUPS["task"]: {"broken": "acme_no_such:Thing"}})
    result = doctor(tmp_path, f"{CLASS}listeners=SASL_SSL://:9092\n")
    assert result.exit_code == 0, result.output
    assert "task broken of acme is broken: ModuleNotFoundError" in result.output


def test_secrets_are_never_printed(site: Path, package: Path, tmp_path: Path) -> None:
    code = """
        import pydantic
        class plugin:
            class Settings(pydantic.BaseModel):
                open_sesame: pydantic.SecretStr
                hour: int = 0
    """
    distribute(site, "acme", {GROUPS["supplier"]: {"mine": "acme_mine:plugin"}}, {"acme_mine": code})
    properties = (
        f"{CLASS}{PREFIX}supplier=mine\n{PREFIX}kafka.sasl.password=S3CR3T-1\n"
        f"{PREFIX}plugin.mine.open-sesame=S3CR3T-2\n{PREFIX}plugin.mine.hour="
    )
    for hour in ("22", "late"):
        result = doctor(tmp_path, properties + hour)
        assert f"{PREFIX}plugin.mine.open-sesame" in result.output
        assert "***" in result.output
        assert "S3CR3T" not in result.output


def test_markup_in_a_value_is_printed_as_it_is(site: Path, package: Path, tmp_path: Path) -> None:
    result = doctor(tmp_path, f"{CLASS}{PREFIX}static.excluded.principal.name.list=[red]a[/red]\n")
    assert "[red]a[/red]" in result.output


def test_a_file_that_is_not_there_is_wrong(tmp_path: Path) -> None:
    result = run("doctor", tmp_path / "none.properties")
    assert result.exit_code == 1
    assert "none.properties can't be read" in result.output


@pytest.mark.parametrize(
    ("jars_there", "words"),
    [
        ([], "no jar of quotahost's in"),
        (["0.1.0", "0.0.9"], "more than one jar of quotahost's"),
        (["0.0.9"], "the jar needs quotahost 0.0.9, installed is 0.1.0"),
    ],
)
def test_there_must_be_exactly_one_jar_of_the_installed_version(
    site: Path, kafka: Path, tmp_path: Path, jars_there: list[str], words: str
) -> None:
    for version in jars_there:
        write_jar(kafka / "libs" / f"quotahost-{version}.jar", version)
    result = doctor(tmp_path, CLASS, "--kafka-home", kafka)
    assert result.exit_code == 1
    assert words in result.output
    assert f"quotahost install --kafka-home {kafka}" in result.output


def test_a_jar_for_another_jpype_is_wrong(site: Path, kafka: Path, tmp_path: Path) -> None:
    write_jar(kafka / "libs" / "quotahost-0.1.0.jar", jpype="1.7.1")
    result = doctor(tmp_path, CLASS, "--kafka-home", kafka)
    assert result.exit_code == 1
    assert "the jar needs jpype1 1.7.1, installed is 1.6.0" in result.output


def test_another_environment_is_examined_by_its_own_quotahost(
    site: Path, kafka: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_jar(kafka / "libs" / "quotahost-0.1.0.jar")
    distribute(site, "acme", {GROUPS["supplier"]: {"theirs": "builtins:print"}})
    other = tmp_path / "other"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", other], check=True)
    libraries = next((other / "lib").glob("python3*/site-packages"))
    (libraries / "all.pth").write_text("\n".join(path for path in sys.path if path and Path(path).is_dir()))
    properties = tmp_path / "server.properties"
    properties.write_text(f"{CLASS}{PREFIX}python.executable={other}/bin/python\n{PREFIX}supplier=theirs\n")

    result = run("doctor", properties, "--kafka-home", kafka)

    printed = capfd.readouterr().out
    assert result.exit_code == 0, printed
    assert f"ok    {other}/bin/python" in printed
    assert "theirs" in printed


def test_another_environment_without_quotahost_is_wrong_but_the_properties_are_still_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    other = tmp_path / "other"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", other], check=True)
    properties = tmp_path / "server.properties"
    properties.write_text(f"{CLASS}{PREFIX}static.produce=10M\n")

    result = run("doctor", properties, "--python", other / "bin" / "python")

    assert result.exit_code == 1
    assert "quotahost is not installed there" in result.output
    assert f"{PREFIX}python.executable={sys.executable}" in result.output
    assert "10,000,000 bytes/s (10M)" in result.output


# ---- the interpreter ----


def python(**changes: object) -> Interpreter:
    facts: dict[str, object] = {
        "asked": "/opt/python",
        "executable": "/opt/python",
        "prefix": "/opt",
        "version": "3.12.4",
        "libpython": "/opt/lib/libpython3.12.so.1.0",
        "is_free_threaded": False,
        "jpype": "1.6.0",
        "quotahost": "0.1.0",
        "config": ("LDLIBRARY=libpython3.12.so", "LIBDIR=/opt/lib", "Py_ENABLE_SHARED=1"),
    }
    return Interpreter(**{**facts, **changes})  # type: ignore[arg-type]


def told(section: Section, level: Level) -> list[str]:
    return [f"{finding.text} -> {finding.remedy}" for finding in section.findings if finding.level is level]


def test_a_good_interpreter_has_nothing_wrong_or_weak() -> None:
    section = check_python(python())
    assert {finding.level for finding in section.findings} == {Level.GOOD}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": "3.10.14"}, ["Python 3.10.14; 3.11 or newer is needed"]),
        ({"version": "3.13.1", "is_free_threaded": True}, ["free-threaded", "name an ordinary build"]),
        (
            {"libpython": "", "config": ("LDLIBRARY=libpython3.12.a", "Py_ENABLE_SHARED=0")},
            ["no shared libpython", "Py_ENABLE_SHARED=0", "apt install libpython3.12", "--enable-shared"],
        ),
        ({"quotahost": ""}, ["quotahost is not installed there", "/opt/python -m pip install quotahost"]),
        ({"jpype": ""}, ["jpype1 is not installed there"]),
    ],
)
def test_an_interpreter_that_will_not_do_is_wrong_with_its_remedy(
    changes: dict[str, object], words: list[str]
) -> None:
    (wrong,) = told(check_python(python(**changes)), Level.WRONG)
    for word in words:
        assert word in wrong


def test_an_interpreter_looked_up_on_path_is_weak() -> None:
    (weak,) = told(check_python(python(asked="python3")), Level.WEAK)
    assert f"{PREFIX}python.executable=/opt/python" in weak


def test_this_interpreter_is_asked_for_real() -> None:
    found = ask(sys.executable)
    assert found.version == ".".join(map(str, sys.version_info[:3]))
    assert found.prefix == sys.prefix
    assert [line.partition("=")[0] for line in found.config] == ["LDLIBRARY", "LIBDIR", "Py_ENABLE_SHARED"]


def test_what_is_no_python_is_told(tmp_path: Path) -> None:
    failing = tmp_path / "failing"
    failing.write_text("#!/bin/sh\necho no such option >&2\nexit 2\n")
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\n")
    for script in (failing, silent):
        script.chmod(0o755)

    with pytest.raises(InterpreterError, match="can't be run: No such file"):
        ask(str(tmp_path / "none"))
    with pytest.raises(InterpreterError, match=r"no working Python 3.11 or newer: no such option"):
        ask(str(failing))
    with pytest.raises(InterpreterError, match="is no Python"):
        ask(str(silent))


# ---- the broker's file ----


def broker(tmp_path: Path, text: str) -> BrokerFile:
    path = tmp_path / "server.properties"
    path.write_bytes(text.encode("latin-1"))
    return read_broker_file(path)


def test_properties_are_read_as_java_reads_them(tmp_path: Path) -> None:
    file = broker(
        tmp_path,
        "# comment\n! comment\n  a = 1 \nb:2\nc\\ d=3\ne=one,\\\n    two\n"
        "f=\\u00fc\\t\ng=\xfc\nempty\na=last\n",
    )
    assert file.properties == {
        "a": "last",
        "b": "2",
        "c d": "3",
        "e": "one,two",
        "f": "ü\t",
        "g": "ü",
        "empty": "",
    }


def test_values_of_config_providers_are_left_to_the_broker(site: Path, package: Path, tmp_path: Path) -> None:
    provided = f"{PREFIX}static.produce=${{file:/etc/rates:produce}}\n"
    result = doctor(tmp_path, f"{CLASS}config.providers=file\n{provided}")
    assert result.exit_code == 0, result.output
    assert f"{PREFIX}static.produce is not checked: a config provider" in result.output
    assert doctor(tmp_path, CLASS + provided).exit_code == 1


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ("", ["PLAINTEXT"]),
        ("listeners=SASL_SSL://:9092,SASL_PLAINTEXT://:9093", []),
        ("listeners=SSL://:9092", ["SSL"]),
        ("listeners=SSL://:9092\nssl.client.auth=required", []),
        ("listeners=A://:1,B://:2\nlistener.security.protocol.map=A:SSL,B:SSL\n"
         "ssl.client.auth=required\nlistener.name.b.ssl.client.auth=requested", ["B"]),
        ("listeners=IN://:1,CTL://:2\nlistener.security.protocol.map=IN:SASL_SSL,CTL:PLAINTEXT\n"
         "controller.listener.names=CTL", []),
    ],
)  # fmt: skip
def test_listeners_on_which_everybody_is_anonymous(
    tmp_path: Path, properties: str, expected: list[str]
) -> None:
    assert unauthenticated(broker(tmp_path, properties)) == expected


# ---- what is weak ----

TOTAL = "topics.total.bytes.in.per.sec.threshold"


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ("listeners=PLAINTEXT://:9092", "nobody authenticates on PLAINTEXT, and no principal is excluded"),
        (
            f"listeners=PLAINTEXT://:9092\n{PREFIX}static.excluded.principal.name.list=ANONYMOUS",
            "nobody there is throttled",
        ),
        (f"{PREFIX}metrics.port=9404\n{PREFIX}metrics.address=0.0.0.0", "metrics are served on 0.0.0.0"),
        (f"{PREFIX}clients.idle=59m", "clients.idle is below the hour"),
        (f"{PREFIX}newcomers.controller-mutation=unlimited", "newcomers are unlimited (controller-mutation)"),
        (f"{PREFIX}factor.source=fixed\n{PREFIX}fallback.action=OPEN", "fallback.action is OPEN"),
        (
            f"{PREFIX}factor.source=fixed\n{PREFIX}validity=500ms",
            "validity is not above twice factor.interval",
        ),
        (f"{PREFIX}policy=p", "a policy is named, but no factor.source"),
        (f"{PREFIX}mode=shadow", "nothing is enforced"),
        (f"{PREFIX}supplier=static", "nobody is throttled"),
        (f"{PREFIX}supplier=mine\n{PREFIX}static.fetch=1M", "the supplier static is not named"),
        (f"{PREFIX}{TOTAL}=10M", "the broker's authorizer is not the fence"),
        (
            f"{PREFIX}{TOTAL}=10M\n{PREFIX}{TOTAL.replace('total.', '')}=a:4M,b:6M\n"
            "authorizer.class.name=org.quotahost.QuotaFence",
            "topics without one take nothing in",
        ),
    ],
)
def test_each_weakness_is_told_once_with_a_remedy(tmp_path: Path, properties: str, words: str) -> None:
    listeners = "" if "listeners" in properties else "listeners=SASL_SSL://:9092\n"
    if "factor.source" in properties:
        listeners += "authorizer.class.name=org.quotahost.QuotaFence\n"
    file = broker(tmp_path, listeners + properties)
    (weak,) = check_weak(Settings.from_properties(file.properties), file).findings
    assert weak.level is Level.WEAK
    assert words in weak.text
    assert weak.remedy


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "::1", "127.1.2.3"])
def test_metrics_on_loopback_are_not_weak(tmp_path: Path, address: str) -> None:
    metrics = f"{PREFIX}metrics.port=9404\n{PREFIX}metrics.address={address}"
    file = broker(tmp_path, f"listeners=SASL_SSL://:9092\n{metrics}")
    (finding,) = check_weak(Settings.from_properties(file.properties), file).findings
    assert finding.level is Level.GOOD
