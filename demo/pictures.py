"""This module gives the demo's three pictures their common style, and writes figures as PNG files."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # draws into files, without a display

from matplotlib import pyplot


def tidy(every: Iterable[Any]) -> None:
    """Removes the upper and right frame of each axes, and puts its legend beside it."""
    for axes in every:
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))


def save(figure: Any, file: Path) -> None:
    """Writes the figure as a PNG; makes the folder if it is missing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)
    pyplot.close(figure)
