"""The pipeline's command: its errors are clear and have no secret; it checks directories and topics, and ends well."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.request import urlopen

import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.sql import SparkSession
from typer.main import get_command
from typer.testing import CliRunner

from harness.system.waiting import eventually
from quotahost.base.background import start_daemon
from quotahost.base.errors import Unusable
from quotahost.base.text import short
from quotahost.cli.main import app
from quotahost.pipeline import main as pipeline
from quotahost.pipeline import session as spark_session
from quotahost.pipeline.clients import JvmKafka, ensure_topics
from quotahost.pipeline.main import lock, refusal, submit_line, wait_for
from quotahost.pipeline.monitoring import Progress
from quotahost.pipeline.options import Options, OptionsError, as_text, options
from quotahost.records.topics import COMPACTED

SECRET = "hunter2-very-secret"
GIVEN = {"bootstrap": "a:1", "checkpoint": "/x"}


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("checkpoint", None, ") is missing; give it"),
        ("tick", "5x", ")=5x: has the unknown unit 'x'"),
        ("batch", 0, ")=0: "),
        *((name, "", ")='': must have at least 1") for name in ("history", "metrics_address", "master")),
        ("topics_prefix", "a b", ""),
        *(("snapshots_topic", two, "name each topic once, with a cluster") for two in ("a,b", "a=A,b=A", "a=A,a=B")),
        ("snapshots_topic", "a=", "'a=' is neither TOPIC nor TOPIC=CLUSTER"),
        ("snapshots_topic", "a' OR 1=1", "neither TOPIC nor TOPIC=CLUSTER"),
        ("snapshots_topic", "", ""),
        ("kafka", f'{{"ssl.key.password": ["{SECRET}"]}}', "valid string"),
    ],
)
def test_the_error_names_option_and_variable_of_what_is_missing_or_wrong(
    option: str, value: str | int | None, problem: str
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
        ({"tick": "60s", "validity": "60s"}, r"--validity=60s must be longer than --tick and --interval \(60s\)"),
        ({"interval": "2m", "validity": "60s"}, r"--validity=60s must be longer than --tick and --interval \(120s\)"),
        ({"validity": "60s", "expiry": "59s"}, r"--expiry=59s must not be shorter than --validity=60s"),
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


def test_options_come_from_the_environment_and_what_is_given_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTAHOST_PIPELINE_BOOTSTRAP", "env:1")
    monkeypatch.setenv("QUOTAHOST_PIPELINE_SNAPSHOTS_TOPIC", "one, two=other")
    made = options(checkpoint="/x")
    assert (made.bootstrap, [*made.clusters("own")]) == ("env:1", ["one", "two"])
    assert options(checkpoint="/x", bootstrap="given:1").bootstrap == "given:1"


def test_secrets_come_by_file_or_environment_and_are_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert SECRET not in repr(made) + str(made.model_dump_json()) + submit_line(made)


@pytest.mark.parametrize("escape", [f"\\u{SECRET}", "\\u12"])
def test_a_file_with_a_malformed_escape_shows_nothing_of_its_secrets(tmp_path: Path, escape: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"ssl.key.password={escape}\n")
    with pytest.raises(OptionsError) as raised:
        options(**GIVEN, kafka_config=file)
    assert str(raised.value) == f"--kafka-config {file} can't be read: it is not a properties file"


def test_the_submit_line_is_one_that_a_shell_reads_back() -> None:
    made = Options(bootstrap="a:1,b:2", checkpoint="/my dir", tick="10s", snapshots_topic="x,y=ID_1", history="None")
    line = submit_line(made.model_copy(update={"master": "spark://h:7077"}))
    shell = ["bash", "-c", f"spark-submit() {{ printf '%s\\n' \"$@\"; }}\n{line}"]
    words = subprocess.run(shell, capture_output=True, text=True, check=True).stdout.splitlines()
    given = dict(zip(words[-10::2], words[-9::2], strict=True))
    expected = {"--bootstrap": "a:1,b:2", "--checkpoint": "/my dir", "--snapshots-topic": "x,y=ID_1", "--tick": "10s"}
    expected["--history"] = "None"
    assert given == expected
    assert words[:2] == ["--master", "spark://h:7077"]
    assert f"spark.pyspark.driver.python={sys.executable}" in words
    (log4j,) = (word.rpartition("=")[2] for word in " ".join(words).split() if word.startswith("-Dlog4j2"))
    with urlopen(log4j) as file:
        assert b"rootLogger.level = ${env:QUOTAHOST_SPARK_LOG:-warn}" in file.read(), "Spark logs only warnings"
    assert all(Path(jar).is_file() for jar in words[words.index("--jars") + 1].split(","))


def test_a_package_without_the_connector_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_session, "path", lambda name: tmp_path / name)
    with pytest.raises(Unusable, match="make build"):
        spark_session.jars()


def test_the_command_without_spark_says_what_to_install() -> None:
    code = "import sys; sys.modules['pyspark'] = None; from quotahost.cli.main import app; app()"
    command = [sys.executable, "-c", code, "pipeline", "--bootstrap", "a:1", "--checkpoint", "/x"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'quotahost[spark]'" in done.stderr


def test_without_a_java_the_command_says_which_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "absent"))
    command = [sys.executable, "-m", "quotahost", "pipeline", "--bootstrap", "a:1", "--checkpoint", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "Spark didn't start: it needs Java 17 or 21, in JAVA_HOME or on the PATH"


def test_the_command_shows_defaults_that_it_reads_back_and_no_option_for_secrets() -> None:
    parameters = get_command(app).commands["pipeline"].params  # type: ignore[attr-defined]
    defaults = {each.name: each.show_default for each in parameters if isinstance(each.show_default, str)}
    assert {"interval", "tick", "validity", "expiry", "fill_window", "batch"} <= set(defaults)
    assert (defaults["interval"], defaults["expiry"]) == ("0.15s", "86400s")
    assert options(**GIVEN, **defaults) == options(**GIVEN)
    assert as_text(options(**GIVEN, expiry="86400001ms").expiry) == "86400.001s"
    assert "kafka" not in {each.name for each in parameters}


# ---- directories ----

LOCAL = "file:///"


@pytest.mark.parametrize(
    ("directory", "default"),
    [("/srv/c", "hdfs://h:8020"), *((directory, LOCAL) for directory in ("file:///mnt/c", "hdfs://h/c", "s3a://b/c"))],
)
def test_what_executors_reach_is_taken(directory: str, default: str) -> None:
    assert refusal("checkpoint", directory, "spark://h:7077", default) == ""


def test_a_checkpoint_that_is_the_history_or_lies_in_it_is_refused(tmp_path: Path) -> None:
    link, place = tmp_path / "link", tmp_path / "a%20b#c"  # Hadoop treats this name like any other
    link.symlink_to(place)
    for same in (str(place), f"{place}/", f"file:{place}", f"file://{place}", str(link)):
        for checkpoint in (place, place / "checkpoint"):
            with pytest.raises(OptionsError, match="give each a directory of its own"):
                lock([str(checkpoint), same])


def test_while_it_stands_by_a_signal_ends_it(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    locks = lock([str(tmp_path)])
    assert locks
    with locks:
        assert wait_for([str(tmp_path)], Progress(), stop) is None


def test_a_disk_that_hangs_at_the_start_is_named_and_a_signal_ends_the_pipeline(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stop = threading.Event()
    os.mkfifo(tmp_path / "_quotahost.lock")  # no process reads it, so whoever opens it hangs
    ended = list[object]()
    starting = start_daemon("start", lambda: ended.append(wait_for([str(tmp_path)], Progress(), stop)))
    eventually(lambda: f"a disk hangs; the pipeline starts when it answers: {tmp_path}" in caplog.text)
    stop.set()
    starting.join(20)
    assert ended == [None]


def test_what_lies_elsewhere_has_no_lock_and_needs_hadoops_programs() -> None:
    elsewhere = ["hdfs://h/c", "s3a://b/c"]
    assert lock(elsewhere) is not None
    assert [*map(spark_session.checkpoint_files, elsewhere)] == [{}, {}]
    assert all(map(spark_session.checkpoint_files, ["/var/c", "c", "file:///c"]))


# ---- topics ----


class Kafka:
    """A cluster with the topics ``there``, by their partitions; ``late`` more brokers start during the first wait."""

    def __init__(self, brokers: int = 3, late: int = 0, there: dict[str, int] | None = None) -> None:
        self._brokers, self._late, self.there = brokers, late, there or {}
        self.made: dict[str, tuple[int, Mapping[str, str]]] = {}

    def cluster(self) -> tuple[str, list[str]]:
        return "id", [str(n) for n in range(self._brokers)]

    def topics(self, names: Collection[str]) -> dict[str, int]:
        return {name: partitions for name, partitions in self.there.items() if name in names}

    def create(self, name: str, partitions: int, replicas: int, config: Mapping[str, str]) -> bool:
        self.made[name] = replicas, config
        return True

    def _wait(self, _: float) -> None:
        self._brokers, self._late = self._brokers + self._late, 0

    def ensure(self) -> dict[str, tuple[int, Mapping[str, str]]]:
        ensure_topics(self, options(**GIVEN, topics_prefix="t."), self._wait)  # type: ignore[arg-type]
        return self.made


@pytest.mark.parametrize("late", [0, 2])
def test_absent_topics_are_made_with_three_replicas_and_dead_letters_leave(late: int) -> None:
    made = Kafka(brokers=3 - late, late=late).ensure()
    assert {replicas for replicas, _ in made.values()} == {3}
    configs = {name: config for name, (_, config) in made.items()}
    assert configs["t.cluster_volumes"] == configs["t.snapshots"] == COMPACTED
    assert configs["t.usage"] == COMPACTED | {"min.compaction.lag.ms": "600000"}
    assert {config["min.insync.replicas"] for config in configs.values()} == {"1"}, "writes go on with two brokers down"
    assert configs["t.refused"]["cleanup.policy"] == configs["t.ticks"]["cleanup.policy"] == "delete"
    assert int(configs["t.refused"]["retention.ms"]) == 7 * 24 * 3600 * 1000
    assert int(configs["t.refused"]["retention.bytes"]) == 2**30


def test_several_partitions_of_the_topic_that_decides_who_leads_are_refused() -> None:
    with pytest.raises(Unusable, match=r"topic t\.cluster_volumes has 3 partitions, and must have one"):
        Kafka(there={"t.cluster_volumes": 3}).ensure()
    Kafka(there={"t.snapshots": 3}).ensure()  # any number keeps the order of a key's records


# ---- the command ----


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """The command installs its own signal handlers; this fixture restores those of the tests."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def run(checkpoint: object, *options: object) -> tuple[int, str]:
    """The command's exit code, and its error output."""
    given = ("--bootstrap", "a:1", "--checkpoint", checkpoint, *options)
    done = CliRunner().invoke(app, ["pipeline", *map(str, given)])
    return done.exit_code, done.stderr


def test_a_port_that_is_taken_and_a_directory_that_cannot_be_written_to_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code, text = run(tmp_path / "file/checkpoint", "--metrics-port", port)
    assert code == 1
    assert f"--metrics-port {port} on --metrics-address 127.0.0.1 can't be used: OSError" in text
    code, text = run(tmp_path / "file/checkpoint")
    assert code == 1
    assert "--checkpoint can't be written to: " in text
    (tmp_path / "history-usage").touch()
    code, text = run(tmp_path / "checkpoint", "--history", tmp_path / "history")
    assert code == 1
    assert f"--history can't be written to: FileExistsError: [Errno 17] File exists: '{tmp_path}" in text


class Job:
    """A stand-in for the Spark job; it raises ``begins`` at its start, and ``runs``, also a signal, while it runs."""

    def __init__(self, begins: Exception | None = None, runs: Exception | signal.Signals | None = None) -> None:
        self._begins, self._runs, self.stopped = begins, runs, False

    def __call__(self, *_: object) -> "Job":
        if self._begins:
            if isinstance(self._runs, signal.Signals):
                signal.raise_signal(self._runs)
            raise self._begins
        return self

    def run(self, stop: threading.Event) -> None:
        if isinstance(self._runs, Exception):
            raise self._runs
        signal.raise_signal(self._runs or signal.SIGTERM)
        self.stopped = stop.is_set()

    def by(self, monkeypatch: pytest.MonkeyPatch, master: str = "local[2]") -> "Job":
        @contextmanager
        def session(*_: object) -> Iterator[Any]:
            signal.signal(signal.SIGINT, lambda *_: pytest.fail("Spark's own handler of SIGINT runs and ends Python"))
            yield SimpleNamespace(sparkContext=SimpleNamespace(master=master))

        fakes = {"session": session, "Job": self, "hadoop": lambda _: {"fs.defaultFS": LOCAL}}
        for name, fake in (fakes | {"file_system": lambda *_: None}).items():
            monkeypatch.setattr(pipeline, name, fake)
        return self


LATE = Py4JError("TimeoutException: Timed out waiting for a node assignment\n\tat org.apache.kafka")


@pytest.mark.parametrize(
    ("job", "master", "code", "begins", "ends"),
    [
        (Job(LATE), "local[2]", 1, "--bootstrap a:1 doesn't answer, or refuses this client: Py4JError: TimeoutExcepti",
         "check the address, --kafka-config, and the rights of docs/security.md"),
        (Job(LATE), "spark://h:7077", 2, "--checkpoint /", "if it is mounted on all machines under that path"),
        *((Job(runs=problem), "local[2]", 1, "Spark has ended: ", "--driver-memory; start the pipeline again")
          for problem in (ConnectionRefusedError(111, "Connection refused"), Py4JNetworkError("no answer"))),
    ],
)  # fmt: skip
def test_what_ends_the_pipeline_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: Job, master: str, code: int, begins: str, ends: str
) -> None:
    """A cluster that doesn't answer, a directory that executors don't reach, and a Spark that ends by itself."""
    job.by(monkeypatch, master)
    found, text = run(tmp_path)
    line = text.splitlines()[-1]
    assert (found, line.startswith(begins), line.endswith(ends)) == (code, True, True), text


def test_a_directory_that_spark_can_not_use_is_named(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    Job().by(monkeypatch)
    monkeypatch.setattr(pipeline, "file_system", lambda _, place: spark_session.file_system(spark, place))
    code, text = run("s3://bucket/checkpoint")
    assert (code, "--checkpoint s3://bucket/checkpoint can't be used: " in text) == (1, True), text
    assert 'No FileSystem for scheme "s3"' in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("begins", [None, LATE], ids=["the pipeline runs", "the pipeline waits for brokers"])
def test_a_signal_stops_the_pipeline_though_a_spark_context_takes_sigint_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, begins: Exception | None
) -> None:
    job = Job(begins, runs=number).by(monkeypatch)
    assert run(tmp_path) == (0, "")
    assert job.stopped is (begins is None)


@pytest.mark.parametrize(
    ("client", "named"),
    [
        ({"security.protocol": "SSL", "ssl.truststore.location": "/absent.jks"}, "/absent.jks"),
        ({"sasl.jaas.config": f'Module required username="a" password={SECRET} {SECRET};'}, "sasl.jaas.config"),
        ({"sasl.jaas.config": ""}, "sasl.jaas.config"),
    ],
)
def test_a_wrong_client_is_named_without_its_secrets(spark: SparkSession, client: dict[str, str], named: str) -> None:
    sasl = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    with pytest.raises(Py4JJavaError) as raised:
        JvmKafka(spark, sasl | client).producer()
    line = short(raised.value)
    assert named in line
    assert SECRET not in line
    assert "\n" not in line
