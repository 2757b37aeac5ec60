"""Makes the tables of docs/reference/differences.md from ``tests/requirements``.

The first ones list where Kafka 4 or quotahost does otherwise than a document says, the last one where documents
contradict each other or themselves.
"""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools.proofs import proofs
from tools.requirements import CONTRADICTIONS, ROOT, Document, documents, filled


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two sentences that can't both hold, of one document or of two, what holds here, and the tests of it."""

    between: tuple[str, str]
    one: str
    other: str
    here: str
    tests: tuple[str, ...] = ()


def contradictions() -> list[Contradiction]:
    """All of them.

    Raises:
        TypeError: an entry has an unknown field, or lacks one.
        KeyError: a number is not among the figures.
    """
    content = tomllib.loads(CONTRADICTIONS.read_text(encoding="utf-8"))
    return [Contradiction(**filled(entry)) for entry in content["contradiction"]]


def is_there(test: str) -> bool:
    """Whether a test of this name, as ``path::name``, or ``path#method`` in Java, is in its file."""
    path, separator, name = re.split("(::|#)", test, maxsplit=1)
    file = ROOT / path
    defined = rf"^\s*def {name}\(" if separator == "::" else rf"^\s+(?:public )?(?:void|boolean) {name}\("
    return file.exists() and bool(re.search(defined, file.read_text(encoding="utf-8"), re.MULTILINE))


def tables() -> str:
    """All tables in Markdown."""
    columns = "| documents | one says | the other says | here | tests |\n|---|---|---|---|---|"
    disagree = "\n".join([columns, *map(_contradiction, contradictions())])
    return "\n\n".join(
        [
            *(_table(each) for each in documents().values() if any(r.differs for r in each.requirements.values())),
            "## Where the documents disagree",
            disagree,
        ]
    )


def _table(document: Document) -> str:
    rows = [
        _row(each.quote, each.today, each.why, _links(str(p.path.relative_to(ROOT)) for p in proofs().get(key, [])))
        for key, each in document.requirements.items()
        if each.differs
    ]
    head = [f"## {document.title}", "", "| the document says | today | why | tests |", "|---|---|---|---|"]
    return "\n".join([*head, *rows])


def _contradiction(c: Contradiction) -> str:
    titles = " and ".join(dict.fromkeys(documents()[name].title for name in c.between))
    return _row(titles, c.one, c.other, c.here, _links(re.split("::|#", test)[0] for test in c.tests))


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _links(paths: Iterable[str]) -> str:
    return ", ".join(f"[{Path(path).stem}](../../{path})" for path in dict.fromkeys(paths))
