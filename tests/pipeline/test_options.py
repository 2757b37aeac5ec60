"""Options and the command: clear errors, and no secret anywhere."""

import signal
import socket
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import MagicMock
from urllib.request import urlopen

import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.sql import SparkSession
from typer.main import get_command
from typer.testing import CliRunner

from quotahost.base.errors import Unusable
from quotahost.base.text import short
from quotahost.cli.main import app
from quotahost.pipeline import main as pipeline
from quotahost.pipeline import session as spark_session
from quotahost.pipeline.clients import JvmKafka
from quotahost.pipeline.main import submit_line
from quotahost.pipeline.options import Options, OptionsError, as_text, options
from quotahost.records.topics import SHARES, USAGE

SECRET = "hunter2-very-secret"


GIVEN = {"bootstrap": "a:1", "checkpoint": "/x"}


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("checkpoint", None, "Field required"),
        ("tick", "5x", "unknown unit 'x'"),
        ("topics_prefix", "a b", ""),
        *(("snapshots_topic", two, "name each topic once, with a cluster") for two in ("a,b", "a=A,b=A", "a=A,a=B")),
        ("snapshots_topic", "a=", "'a=' is neither TOPIC nor TOPIC=CLUSTER"),
        ("snapshots_topic", "a' OR 1=1", "neither TOPIC nor TOPIC=CLUSTER"),
        ("snapshots_topic", "", ""),
        ("kafka", f'{{"ssl.key.password": ["{SECRET}"]}}', "valid string"),
    ],
)
def test_the_error_names_option_and_variable_of_what_is_missing_or_wrong(
    option: str, value: str | None, problem: str
) -> None:
    with pytest.raises(OptionsError) as raised:
        options(**GIVEN | {option: value})
    named = f"--{option.replace('_', '-')} (or QUOTAHOST_PIPELINE_{option.upper()})"
    assert named in str(raised.value)
    assert problem in str(raised.value)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"tick": "60s", "validity": "60s"}, r"validity .* must be longer than tick"),
        ({"validity": "60s", "expiry": "59s"}, r"expiry .* must not be shorter than validity"),
        ({"kafka_config": "/none"}, r"--kafka-config /none can't be read: No such file"),
    ],
)
def test_options_that_do_not_fit_together_and_a_missing_file_are_refused(given: dict[str, str], problem: str) -> None:
    with pytest.raises(OptionsError, match=problem):
        options(**GIVEN, **given)


def test_a_topic_belongs_to_the_cluster_it_is_given_with_else_to_the_bootstraps() -> None:
    assert options(**GIVEN).clusters("own") == {"__quotahost_snapshots": "own"}
    with pytest.raises(OptionsError, match="--snapshots-topic: name each topic once"):
        options(**GIVEN, snapshots_topic="mine,theirs=A").clusters("A")
    several = options(**GIVEN, snapshots_topic="mine,a.snapshots=A-1,b.snapshots=B_2")
    assert several.clusters("own") == {"mine": "own", "a.snapshots": "A-1", "b.snapshots": "B_2"}


def test_topics_begin_as_the_brokers_do_unless_those_of_snapshots_are_named() -> None:
    made = options(**GIVEN, topics_prefix="acme.")
    assert made.clusters("own") == {"acme.snapshots": "own"}
    assert [made.named(topic) for topic in (USAGE, SHARES)] == ["acme.usage", "acme.shares"]
    assert submit_line(made, "local[2]").count("acme.") == 1


def test_options_come_from_the_environment_and_what_is_given_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTAHOST_PIPELINE_BOOTSTRAP", "env:1")
    monkeypatch.setenv("QUOTAHOST_PIPELINE_SNAPSHOTS_TOPIC", "one, two=other")
    made = options(checkpoint="/x")
    assert (made.bootstrap, [*made.clusters("own")]) == ("env:1", ["one", "two"])
    assert options(checkpoint="/x", bootstrap="given:1").bootstrap == "given:1"


def test_secrets_come_by_file_or_environment_and_are_shown_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"security.protocol=SSL\nssl.key.password={SECRET}\n")
    monkeypatch.setenv("QUOTAHOST_PIPELINE_KAFKA", f'{{"sasl.jaas.config": "x {SECRET}"}}')
    made = options(**GIVEN, kafka_config=file)
    assert made.client() == {
        "client.id": "quotahost-pipeline",
        "security.protocol": "SSL",
        "ssl.key.password": SECRET,
        "sasl.jaas.config": f"x {SECRET}",
        "bootstrap.servers": "a:1",
    }
    assert SECRET not in repr(made) + str(made.model_dump_json()) + submit_line(made, "local[2]")


@pytest.mark.parametrize("escape", [f"\\u{SECRET}", "\\u12"])
def test_a_file_with_a_malformed_escape_shows_nothing_of_its_secrets(tmp_path: Path, escape: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"ssl.key.password={escape}\n")
    with pytest.raises(OptionsError) as raised:
        options(**GIVEN, kafka_config=file)
    assert str(raised.value) == f"--kafka-config {file} can't be read: it is no properties file"


@pytest.mark.parametrize("time", ["1000001s", "86400001ms", "7d"])
def test_a_long_time_reads_back(time: str) -> None:
    assert as_text(options(**GIVEN, expiry=time).expiry) == time


def test_the_submit_line_is_one_that_a_shell_reads_back() -> None:
    made = Options(bootstrap="a:1,b:2", checkpoint="/my dir", tick="10s", snapshots_topic="x,y=ID_1")
    line = submit_line(made, "spark://h:7077")
    shell = ["bash", "-c", f"spark-submit() {{ printf '%s\\n' \"$@\"; }}\n{line}"]
    words = subprocess.run(shell, capture_output=True, text=True, check=True).stdout.splitlines()
    given = dict(zip(words[-8::2], words[-7::2], strict=True))
    expected = {"--bootstrap": "a:1,b:2", "--checkpoint": "/my dir", "--snapshots-topic": "x,y=ID_1", "--tick": "10s"}
    assert given == expected
    assert words[:2] == ["--master", "spark://h:7077"]
    (log4j,) = (word.rpartition("=")[2] for word in " ".join(words).split() if word.startswith("-Dlog4j2"))
    with urlopen(log4j) as file:
        assert b"rootLogger.level = ${env:QUOTAHOST_SPARK_LOG:-warn}" in file.read(), "Spark is quiet"
    assert all(Path(jar).is_file() for jar in words[words.index("--jars") + 1].split(","))


def test_a_package_in_a_folder_with_a_space_gives_the_jvm_one_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = spark_session.path("spark")
    (tmp_path / "my dir").mkdir()
    (tmp_path / "my dir/spark").symlink_to(package)
    monkeypatch.setattr(spark_session, "path", lambda name: tmp_path / "my dir" / name)
    (options,) = spark_session.quiet().values()
    assert all(word.startswith("-") for word in options.split())


def test_a_package_without_the_connector_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_session, "path", lambda name: tmp_path / name)
    with pytest.raises(Unusable, match="make build"):
        spark_session.jars()


def test_the_command_without_spark_says_what_to_install() -> None:
    code = "import sys; sys.modules['pyspark'] = None; from quotahost.cli.main import app; app()"
    command = [sys.executable, "-c", code, "pipeline", "--bootstrap", "a:1", "--checkpoint", "/x"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'quotahost[spark]'" in done.stderr


def test_the_command_shows_defaults_that_it_reads_back_and_no_option_for_secrets() -> None:
    parameters = get_command(app).commands["pipeline"].params  # type: ignore[attr-defined]
    defaults = {each.name: each.show_default for each in parameters if isinstance(each.show_default, str)}
    assert {"interval", "tick", "validity", "expiry", "fill_window", "batch"} <= set(defaults)
    assert (defaults["interval"], defaults["expiry"]) == ("150ms", "1d")
    assert options(**GIVEN, **defaults) == options(**GIVEN)
    assert "kafka" not in {each.name for each in parameters}


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the tests stay."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)


def run(*options: object) -> tuple[int, str]:
    """The command's exit code, and what it says of an error."""
    done = CliRunner().invoke(app, ["pipeline", "--bootstrap", "a:1", *map(str, options)])
    return done.exit_code, done.stderr


def test_a_port_that_is_taken_and_a_directory_that_cannot_be_written_to_are_named(
    signals: None, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    given = ["--checkpoint", tmp_path / "file" / "checkpoint"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code, text = run(*given, "--metrics-port", port)
    assert code == 1
    assert f"--metrics-port {port} on --metrics-address 127.0.0.1 can't be used: OSError" in text
    code, text = run(*given)
    assert code == 1
    assert "--checkpoint can't be written to: " in text


@pytest.mark.parametrize(
    ("master", "code", "begins", "ends"),
    [
        (
            "local[2]", 1, "--bootstrap a:1 doesn't answer, or refuses this client: Py4JError: TimeoutException: Timed",
            "look at the address, at --kafka-config, and at the rights of docs/security.md",
        ),
        ("spark://h:7077", 2, "--checkpoint /", "if it is mounted on all machines under that path"),
    ],
)  # fmt: skip
def test_a_cluster_that_does_not_answer_and_a_directory_that_executors_do_not_reach_are_named(
    signals: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, master: str, code: int, begins: str, ends: str
) -> None:
    def job(*_: object) -> None:
        raise Py4JError("TimeoutException: Timed out waiting for a node assignment\n\tat org.apache.kafka")

    spark = MagicMock()
    spark.sparkContext.master = master
    monkeypatch.setattr(pipeline, "session", lambda *_: nullcontext(spark))
    monkeypatch.setattr(pipeline, "hadoop", lambda _: {})
    monkeypatch.setattr(pipeline, "Job", job)
    found, text = run("--checkpoint", tmp_path)
    line = text.splitlines()[-1]
    assert (found, line.startswith(begins), line.endswith(ends)) == (code, True, True)


@pytest.mark.parametrize("problem", [ConnectionRefusedError(111, "Connection refused"), Py4JNetworkError("no answer")])
def test_a_spark_that_ends_by_itself_ends_the_pipeline_in_a_sentence(
    signals: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    monkeypatch.setattr(pipeline, "session", lambda *_: nullcontext(MagicMock()))
    monkeypatch.setattr(pipeline, "hadoop", lambda _: {})
    monkeypatch.setattr(pipeline, "refusal", lambda *_: "")
    monkeypatch.setattr(pipeline, "Job", MagicMock(return_value=MagicMock(run=MagicMock(side_effect=problem))))
    code, text = run("--checkpoint", tmp_path)
    line = text.splitlines()[-1]
    assert (code, line.startswith("Spark has ended: "), "--driver-memory" in line) == (1, True, True), text


@pytest.mark.parametrize(
    ("client", "named"),
    [
        ({"security.protocol": "SSL", "ssl.truststore.location": "/absent.jks"}, "/absent.jks"),
        ({"sasl.jaas.config": f'Module required username="a" password={SECRET} {SECRET};'}, "sasl.jaas.config"),
        ({"sasl.jaas.config": ""}, "sasl.jaas.config"),
    ],
)
def test_what_is_wrong_with_the_clients_configuration_is_named_without_its_secrets(
    spark: SparkSession, client: dict[str, str], named: str
) -> None:
    sasl = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    with pytest.raises(Py4JJavaError) as raised:
        JvmKafka(spark, sasl | client).producer()
    line = short(raised.value)
    assert named in line
    assert SECRET not in line
    assert "\n" not in line
