"""Rewrites the generated sections of the README; ``--check`` only tells whether they are up to date."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

from quotahost import metrics
from quotahost.settings import broker as settings
from quotahost.settings.strimzi import names as strimzi_names

README: Final = Path(__file__).resolve().parents[1] / "README.md"


def renewed(text: str) -> str:
    """The text with its properties, Strimzi's names and metrics as the code has them.

    Raises:
        ValueError: a section's markers are not there exactly once.
    """
    tables = {
        "properties": settings.properties_table(),
        "strimzi": strimzi_names.table(),
        "metrics": metrics.table(),
    }
    for name, table in tables.items():
        text = _with_section(text, name, table.strip())
    return text


def _with_section(text: str, name: str, table: str) -> str:
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    section = re.compile(f"^{begin}\n.*?^{end}$", re.DOTALL | re.MULTILINE)
    if len(section.findall(text)) != 1:
        raise ValueError(f"the text must hold {begin} and {end} once, each on a line of its own")
    return section.sub(lambda _: f"{begin}\n{table}\n{end}", text)


def main() -> int:
    """0, or 1 for a README that was out of date."""
    text = README.read_text(encoding="utf-8")
    new = renewed(text)
    if "--check" not in sys.argv[1:]:
        README.write_text(new, encoding="utf-8")
        return 0
    if new != text:
        print("README.md is out of date: run tools/readme.py", file=sys.stderr)
    return int(new != text)


if __name__ == "__main__":
    sys.exit(main())
