"""Markdown for docs/benchmarks.md: tables, and the line about the machine that stands under them."""

import os
import tempfile
from collections.abc import Sequence


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a Markdown table with these column heads and rows."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def machine_line() -> str:
    """Returns load average, cores and the place of the files, since a busy machine explains slow figures."""
    load = os.getloadavg()[0]
    return f"Load average {load:.1f} at the end, {os.cpu_count()} cores, files on {tempfile.gettempdir()}."
