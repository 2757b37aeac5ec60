"""The report as a folder of PNGs, one for each volume."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from quotahost.report.figure import draw
from quotahost.report.values import Name, Report

_DPI = 130
_LONGEST = 80  # characters of a name; file systems take 255 bytes


def pictures(report: Report, folder: Path, drawn: Callable[[int], None] = lambda count: None) -> list[Path]:
    """Write ``01-CLUSTER-BROKER-VOLUME.png`` and so on, worst first; the folder is made if it is absent.

    Args:
        report: what was found in the history.
        folder: to write to.
        drawn: called after each picture, with the number of pictures written so far.

    Raises:
        OSError: they can't be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for number, curve in enumerate(report.curves, 1):
        file = folder / f"{number:02}-{_file_name(curve.name)}.png"
        figure = draw(curve, report, titled=True)
        figure.savefig(file, dpi=_DPI, facecolor="white", metadata={"Software": None})
        files.append(file)
        drawn(number)
    return files


def _file_name(name: Name) -> str:
    """Letters, digits, dots and dashes: no name of a volume may lead out of the folder."""
    # Two volumes may become alike here; the number in front keeps their files apart.
    return re.sub(r"[^A-Za-z0-9.-]+", "_", "-".join(name)).replace("..", "_")[:_LONGEST]
