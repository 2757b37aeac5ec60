"""Makes the tables of docs/reference/differences.md from tools/differences.toml.

The first lists where Kafka 4 or quotahost does otherwise than a document says, the second where documents contradict
each other or themselves. Numbers in braces are filled in from the models (:mod:`tools.figures`).
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from tools.figures import figures

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True, slots=True)
class Difference:
    """A sentence of a document, and what is so today instead.

    Attributes:
        document: the document's short name, such as ``kip-13``.
        key: the name of the requirement within the document, such as ``append-first``.
        requirement: the document's own words.
        today: what Kafka or quotahost does.
        why: the reason.
        tests: those that prove what is so today: ``path::name`` in Python, ``path#method`` in Java.
    """

    document: str
    key: str
    requirement: str
    today: str
    why: str
    tests: tuple[str, ...]
    state: Literal["differs"] = "differs"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two sentences that can't both hold, of one document or of two, and what holds here."""

    between: tuple[str, str]
    one: str
    other: str
    here: str
    tests: tuple[str, ...] = ()


def documents() -> dict[str, str]:
    """The titles of the documents by their short names."""
    titles: dict[str, str] = _content()["documents"]
    return titles


def differences() -> list[Difference]:
    """All of them, document by document, with numbers in place of their names.

    Raises:
        TypeError: an entry has an unknown field, or lacks one.
        KeyError: a number is not among the figures.
    """
    return [
        Difference(document, key, **_filled(entry))
        for document, entries in _content()["difference"].items()
        for key, entry in entries.items()
    ]


def contradictions() -> list[Contradiction]:
    """All of them; raises like ``differences``."""
    return [Contradiction(**_filled(entry)) for entry in _content()["contradiction"]]


def is_there(test: str) -> bool:
    """Whether a test of this name is in its file."""
    path, _, name = re.split("(::|#)", test, maxsplit=1)
    return name in _tests_of(ROOT / path)


def tables() -> str:
    """Both tables in Markdown, the first one by document."""
    by_document = [
        f"## {title}\n\n| the document says | today | why | tests |\n|---|---|---|---|\n"
        + "\n".join(
            f"| {_cell(d.requirement)} | {_cell(d.today)} | {_cell(d.why)} | {_links(d.tests)} |"
            for d in differences()
            if d.document == document
        )
        for document, title in documents().items()
    ]
    columns = "| documents | one says | the other says | here | tests |\n|---|---|---|---|---|"
    disagree = "\n".join([columns, *map(_row, contradictions())])
    return "\n\n".join([*by_document, "## Where the documents disagree", disagree])


def _row(c: Contradiction) -> str:
    titles = " and ".join(dict.fromkeys(documents()[name] for name in c.between))
    return f"| {titles} | {_cell(c.one)} | {_cell(c.other)} | {_cell(c.here)} | {_links(c.tests)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _links(tests: Iterable[str]) -> str:
    """Their files; the declaration has the names of the tests."""
    paths = dict.fromkeys(re.split("::|#", test)[0] for test in tests)
    return ", ".join(f"[{Path(path).stem}](../../{path})" for path in paths)


def _content() -> dict[str, Any]:
    return tomllib.loads(SOURCE.read_text(encoding="utf-8"))


def _filled(entry: dict[str, Any]) -> dict[str, Any]:
    numbers = figures()
    return {
        field: value.format(**numbers) if isinstance(value, str) else tuple(value) for field, value in entry.items()
    }


@cache
def _tests_of(path: Path) -> frozenset[str]:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if path.suffix == ".java":
        return frozenset(re.findall(r"^\s+(?:public )?(?:void|boolean) (\w+)\(", text, re.MULTILINE))
    return frozenset(node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
