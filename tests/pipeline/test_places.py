"""Directories: refused where executors can't reach them, and never used by two pipelines at a time; and Ctrl-C."""

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.system.waiting import eventually
from quotahost.pipeline import main
from quotahost.pipeline.main import lock, refusal, wait_for
from quotahost.pipeline.monitoring import Progress
from quotahost.pipeline.options import Options, OptionsError
from quotahost.pipeline.session import checkpoint_files

LOCAL, HDFS = "file:///", "hdfs://h:8020"


@pytest.mark.parametrize(
    ("directory", "master", "default", "refused"),
    [
        *(("/srv/c", master, LOCAL, True) for master in ("spark://h:7077", "yarn", "k8s://https://h")),
        ("/srv/c", "local[2]", LOCAL, False),
        ("/srv/c", "spark://h:7077", HDFS, False),  # a path of Hadoop's default file system
        ("file:///mnt/shared/c", "spark://h:7077", LOCAL, False),
        ("hdfs://h/c", "yarn", LOCAL, False),
        ("s3a://bucket/c", "yarn", LOCAL, False),
    ],
)
def test_what_executors_do_not_reach_is_refused(directory: str, master: str, default: str, refused: bool) -> None:
    problem = refusal("checkpoint", directory, master, default)
    assert ("file:///srv/c if it is mounted on all machines" in problem) == refused
    assert (problem == "") != refused


def taken(*directories: object) -> ExitStack:
    locks = lock(map(str, directories))
    assert locks is not None
    return locks


def test_of_two_pipelines_with_one_directory_the_second_stands_by_until_the_first_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = taken(tmp_path)
    progress, stop, waited = Progress(), threading.Event(), list[ExitStack | None]()
    directories = [str(tmp_path / "history"), f"file://{tmp_path}"]
    second = threading.Thread(target=lambda: waited.append(wait_for(directories, progress, stop)))
    second.start()
    eventually(lambda: "another pipeline uses the same --checkpoint or --history" in caplog.text)
    assert progress.registry.get_sample_value("quotahost_pipeline_standing_by") == 1
    assert waited == []
    first.close()
    second.join(30)
    assert len(caplog.records) == 1
    assert lock(directories) is None
    assert waited[0] is not None
    assert progress.registry.get_sample_value("quotahost_pipeline_standing_by") == 0, "it reads now, maybe for minutes"
    waited[0].close()
    taken(*directories).close()


def test_a_pipeline_does_not_wait_for_itself_where_both_directories_are_one(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    for same in (str(tmp_path), f"{tmp_path}/", f"file://{tmp_path}", str(link)):
        with pytest.raises(OptionsError, match="give each a directory of its own"):
            lock([str(tmp_path), same])


def test_while_it_stands_by_a_signal_ends_it(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    with taken(tmp_path):
        assert wait_for([str(tmp_path)], Progress(), stop) is None


def test_what_lies_elsewhere_has_no_lock_and_needs_hadoops_programs() -> None:
    elsewhere = ["hdfs://h/c", "s3a://b/c"]
    assert lock(elsewhere) is not None
    assert [checkpoint_files(each) for each in elsewhere] == [{}, {}]
    assert all(map(checkpoint_files, ["/var/c", "c", "file:///c"]))


@pytest.fixture
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_pipeline_though_a_spark_context_takes_sigint_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    @contextmanager
    def session(*_: object) -> Iterator[Any]:
        signal.signal(signal.SIGINT, lambda *_: pytest.fail("Spark's own handler, which ends Python"))
        yield SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]"))

    class Job:
        def __init__(self, *_: object) -> None: ...

        def run(self, stop: threading.Event) -> None:
            signal.raise_signal(number)
            stopped.append(stop.is_set())

    stopped: list[bool] = []
    for name, fake in (("session", session), ("Job", Job), ("hadoop", lambda _: {"fs.defaultFS": LOCAL})):
        monkeypatch.setattr(main, name, fake)
    main.run(Options(bootstrap="b:1", checkpoint=str(tmp_path / "checkpoint")))
    assert stopped == [True]
