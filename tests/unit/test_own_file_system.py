"""The small file systems on which tests, benches and the demo fill a disk: mounted, and in a namespace without root."""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from harness.system.filesystem import mounted_in_namespace, own_file_system
from quotahost.broker.disks.file_stores import read_disks
from tests.skips import COULD_NOT_RUN

MEGA = 1 << 20


@pytest.mark.parametrize("way", [own_file_system, mounted_in_namespace])
def test_it_has_its_own_size_is_seen_as_a_volume_and_leaves_an_empty_folder(
    tmp_path: Path, way: Callable[[Path, str], AbstractContextManager[bool]]
) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    with way(folder, str(4 * MEGA)) as mounted:
        if not mounted:
            pytest.skip(f"{COULD_NOT_RUN}this user may mount no file system here")
        (folder / "file").write_bytes(bytes(3 * MEGA))
        assert shutil.disk_usage(folder).free == MEGA
        with pytest.raises(OSError, match="No space left"):
            (folder / "more").write_bytes(bytes(2 * MEGA))
        assert read_disks("1", [str(tmp_path), str(folder)]).volumes[1].capacity == 4 * MEGA
    assert list(tmp_path.iterdir()) == [folder]
    assert folder.is_dir()
    assert not folder.is_symlink()
    assert list(folder.iterdir()) == []


def test_a_body_that_fails_leaves_an_empty_folder_and_nothing_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    with pytest.raises(KeyError), mounted_in_namespace(folder, str(4 * MEGA)):
        raise KeyError
    assert list(tmp_path.iterdir()) == [folder]
    assert not folder.is_symlink()


def test_what_may_not_be_mounted_leaves_an_ordinary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with own_file_system(tmp_path / "disk", "4m") as mounted:
        assert not mounted
        assert (tmp_path / "disk").stat().st_dev == tmp_path.stat().st_dev
