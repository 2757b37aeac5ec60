"""The id of the cluster, read from the log directories."""

from pathlib import Path

import pytest

from quotahost.broker.disks.file_stores import cluster_id


def formatted(directory: Path, text: str) -> str:
    directory.mkdir()
    (directory / "meta.properties").write_text(text)
    return str(directory)


def test_the_first_directory_that_has_an_id_decides(tmp_path: Path) -> None:
    old = formatted(tmp_path / "old", "version=0\nbroker.id=1\n")
    one = formatted(tmp_path / "one", "#\n#Sat Nov 21\ncluster.id=4L6g3nShT-eMCtK--X86sw\nversion=1\nnode.id=1\n")
    other = formatted(tmp_path / "other", "cluster.id=another\n")
    assert cluster_id([str(tmp_path / "gone"), old, one, other]) == "4L6g3nShT-eMCtK--X86sw"


@pytest.mark.parametrize("text", ["", "cluster.id=\n", "cluster.id=\\uZZZZ\n", "\0\xff"])
def test_a_directory_without_an_id_is_passed_over(tmp_path: Path, text: str) -> None:
    assert cluster_id([formatted(tmp_path / "without", text), "\0"]) == ""
