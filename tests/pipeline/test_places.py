"""Directories: refused where executors can't reach them, and never used by two pipelines at a time."""

from pathlib import Path

import pytest

from quotahost.errors import QuotahostError
from quotahost.pipeline.main import lock, refusal
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


def test_of_two_pipelines_with_one_directory_the_second_ends(tmp_path: Path) -> None:
    directories = [str(tmp_path / "history"), f"file://{tmp_path}"]
    with lock([str(tmp_path)]), pytest.raises(QuotahostError, match="another pipeline uses file:"):
        lock(directories)
    lock(directories).close()


def test_what_lies_elsewhere_has_no_lock_and_needs_hadoops_programs() -> None:
    elsewhere = ["hdfs://h/c", "s3a://b/c"]
    with lock(elsewhere):
        lock(elsewhere).close()
    assert [checkpoint_files(each) for each in elsewhere] == [{}, {}]
    assert all(map(checkpoint_files, ["/var/c", "c", "file:///c"]))
