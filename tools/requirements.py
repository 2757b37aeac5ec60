"""Reads what the five documents ask for: ``tests/requirements/*.toml``, one file for each document.

Numbers in braces are filled in from the models (:mod:`tools.figures`).
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from tools.figures import figures

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCES: Final = ROOT / "tests/requirements"
CONTRADICTIONS: Final = SOURCES / "contradictions.toml"


@dataclass(frozen=True, slots=True)
class Requirement:
    """A sentence of a document that asks for something.

    Attributes:
        section: where it stands in the document.
        says: the sentence in our words; not needed beside a quote.
        quote: the document's own words, where Kafka or quotahost does otherwise.
        today: what is so instead.
        why: the reason.
    """

    section: str
    says: str = ""
    quote: str = ""
    today: str = ""
    why: str = ""

    @property
    def differs(self) -> bool:
        """Whether Kafka or quotahost does otherwise."""
        return bool(self.today)


@dataclass(frozen=True, slots=True)
class Document:
    """One of the five: its title, and its requirements by their ids, such as ``kip-13.delay``."""

    title: str
    requirements: dict[str, Requirement]


@cache
def documents() -> dict[str, Document]:
    """The five by their short names, such as ``kip-13``.

    Raises:
        TypeError: an entry has an unknown field, or lacks one.
        KeyError: a number is not among the figures.
    """
    found = {}
    for file in sorted(SOURCES.glob("*.toml")):
        if file != CONTRADICTIONS:
            content = tomllib.loads(file.read_text(encoding="utf-8"))
            entries = content["requirement"].items()
            each = {f"{file.stem}.{key}": Requirement(**filled(entry)) for key, entry in entries}
            found[file.stem] = Document(content["title"], each)
    return found


def filled(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry with numbers in place of their names."""
    numbers = figures()
    return {
        field: value.format(**numbers) if isinstance(value, str) else tuple(value) for field, value in entry.items()
    }
