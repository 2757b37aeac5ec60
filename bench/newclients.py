"""Measures how soon new clients have their own quota, in a JVM with the callback and nothing else."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

from bench.callback import class_path
from bench.markdown import table

COUNT: Final = 20_000


def run(*more: str) -> dict[str, float]:
    """Milliseconds by name: the host's start, bursts of new clients, and percentiles of single new clients.

    ``more`` are further properties, ``name=value``.
    """
    _, path = class_path()
    settings = ["static.produce=1M", "clients.max=100000", *more]
    command = ["java", "-cp", path, "NewClients", sys.executable, str(COUNT), *settings]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    figures = (line.split() for line in lines if line.endswith(" ms"))
    return {name: float(value) for name, value, _ in figures}


def report(figures: dict[str, float]) -> str:
    """A Markdown table."""
    return table(["what", "ms"], [[name, f"{value:.2f}"] for name, value in figures.items()])
