"""The report as a folder of PNGs, one for each volume."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from quotahost.report.figure import draw
from quotahost.report.values import Name, Report

_DPI = 130
_MOST = 80  # characters of a name; file systems take 255 bytes


def pictures(report: Report, folder: Path, drawn: Callable[[int], None] = lambda count: None) -> list[Path]:
    """Write ``01-CLUSTER-BROKER-VOLUME.png`` and so on, worst first; the folder is made if it is absent.

    Raises:
        OSError: they can't be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for number, curve in enumerate(report.curves, 1):
        file = folder / f"{number:02}-{_plain(curve.name)}.png"
        draw(curve, report, titled=True).savefig(
            file, dpi=_DPI, facecolor="white", metadata={"Software": None}
        )
        written.append(file)
        drawn(number)
    return written


def _plain(name: Name) -> str:
    """No name may lead out of the folder."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", "-".join(name)).replace("..", "_")[:_MOST]
