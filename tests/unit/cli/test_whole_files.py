"""Tests that a file that a command writes is there as a whole, or not at all."""

import errno
import os
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quotahost.cli.console import whole
from quotahost.cli.quotas import cluster
from tests.unit.cli.commands import run


def full(path: Path, text: str, **_: Any) -> None:
    """Writes the beginning of the text, and fails like a disk that becomes full."""
    with path.open("w") as file:
        file.write(text[:5])
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("before", ["", "what was there before"])
def test_on_a_full_disk_no_half_is_left_and_what_was_there_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, before: str
) -> None:
    asked: Any = SimpleNamespace(client_quotas=dict, recorded=dict, warnings=[])
    monkeypatch.setattr(cluster, "cluster_at", lambda *_: nullcontext(asked))
    out = tmp_path / "out"
    if before:
        out.write_text(before)
    monkeypatch.setattr(Path, "write_text", full)
    done = run("quotas", "export", "--bootstrap", "b", "-o", out)
    assert (done.exit_code, f"{out} can't be written: No space left" in done.stderr) == (2, True)
    assert [file.read_text() for file in tmp_path.iterdir()] == [before] * bool(before)


def test_a_file_keeps_its_mode_a_link_stays_one_and_a_device_or_pipe_is_written_to(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("before")
    file.chmod(0o640)
    link.symlink_to(file)
    # The device is not /dev/null: if the code breaks, root would replace /dev/null by a file.
    terminal, other_end = os.openpty()
    device = Path(os.ttyname(other_end))
    for path in (link, device):
        with whole(path) as made:
            made.write_text("now")
    assert (file.read_text(), file.stat().st_mode & 0o777, link.is_symlink()) == ("now", 0o640, True)
    assert (os.read(terminal, 10), device.is_char_device()) == (b"now", True)
    os.close(terminal)
    os.close(other_end)
    taker, giver = os.pipe()
    with whole(Path(f"/dev/fd/{giver}")) as made:  # a shell's name for >(gzip > FILE)
        made.write_text("now")
    assert os.read(taker, 10) == b"now"
    os.close(taker)
    os.close(giver)
