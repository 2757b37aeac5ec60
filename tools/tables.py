"""Rewrites the tables in the documents that the code defines; ``--check`` only says whether they are up to date."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from quotahost import metrics
from quotahost.settings import broker
from quotahost.settings.strimzi import names

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"

#: document -> the name of its section, and what makes the table in it
TABLES: Final[dict[Path, tuple[str, Callable[[], str]]]] = {
    DOCS / "reference/properties.md": ("properties", broker.properties_table),
    DOCS / "reference/metrics.md": ("metrics", metrics.table),
    DOCS / "strimzi.md": ("strimzi", names.table),
}


def renewed(document: Path, text: str) -> str:
    """The text of this document with its table as the code has it.

    Raises:
        ValueError: the section's markers are not there exactly once.
    """
    name, table = TABLES[document]
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    section = re.compile(f"^{begin}\n.*?^{end}$", re.DOTALL | re.MULTILINE)
    if len(section.findall(text)) != 1:
        raise ValueError(f"{document} must hold {begin} and {end} once, each on a line of its own")
    return section.sub(lambda _: f"{begin}\n{table().strip()}\n{end}", text)


def main() -> int:
    """0, or 1 with ``--check`` if a table was out of date."""
    stale = 0
    for document in TABLES:
        text = document.read_text(encoding="utf-8")
        new = renewed(document, text)
        if new == text:
            continue
        stale += 1
        if "--check" in sys.argv[1:]:
            print(f"{document} is out of date: run tools/tables.py", file=sys.stderr)
        else:
            document.write_text(new, encoding="utf-8")
    return int(bool(stale) and "--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
