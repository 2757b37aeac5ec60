"""Rewrites the tables of the documents that are generated from the code.

With ``--check`` it changes nothing, and exits with 1 if a table is out of date. The lint step runs this check.
"""

import ast
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from quotahost.broker.host.protocol import CALLS
from quotahost.broker.metrics import CATALOGUE, CLIENTS
from quotahost.records.topics import GROUPS, TOPICS, AclRole
from quotahost.settings import broker, strimzi
from tools import api, commands, conformance, records

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = ROOT / "docs"
_PACKAGE: Final = ROOT / "plugin/quotahost"
_SHIM: Final = ROOT / "java-shim/src/main/java/org/quotahost"
_JAVADOC: Final = re.compile(r"^/\*\*(.*?)\*/", re.DOTALL | re.MULTILINE)  # of the file's own class
_COMMENT: Final = re.compile(r"(?:--[^\n]*\n)+")  # at the head of a file of SQL
_SENTENCE: Final = re.compile(r"(.+?\.)(?:\s|$)")


def _table(*rows: Sequence[str]) -> str:
    """A table of Markdown; the first row is its head."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def _rights() -> str:
    """Topics, groups and other resources with the rights to them."""
    return _table(
        ("resource", "what it carries", "brokers' plugins", "pipeline", "`quotahost top`", "quotahost quotas",
         "anybody else who may write"),
        *((f"`{t.name}`", t.carries, *(", ".join(t.operations(role)) for role in AclRole), t.danger) for t in TOPICS),
        (f"groups `{GROUPS}*`", "nothing: no group is joined, no offset is committed", "Describe", "", "Describe",
         "Describe", "nothing: nobody reads them"),
        ("transactional ids", "none: no client of quotahost has transactions", *[""] * 5),
        ("the cluster", "the ids of its brokers, which Kafka shows to every client", *[""] * 5),
    )  # fmt: skip


def _names_of_strimzi() -> str:
    rows: list[tuple[str, ...]] = []
    for theirs in strimzi.PROPERTIES:
        ours = f"`{theirs.ours}`" if theirs.is_own and theirs.ours else theirs.ours
        rows.append((f"`{theirs.name}`", f"`{theirs.default}`" if theirs.default else "", ours, theirs.doc))
    return _table(("Strimzi's property", "its default", "read as", "here"), *rows)


def _metrics() -> str:
    rows: list[tuple[str, ...]] = []
    for m in CATALOGUE:
        named = f",name={m.label.upper()}" if m.label and m.type != CLIENTS else ""
        column = "Uses`, column `" if m.type == CLIENTS else ""
        name = f"`quotahost_{m.prometheus}{m.kind}`" + (f" by `{m.label}`" if m.label else "")
        rows.append((f"`{m.type}{named}`, `{column}{m.attribute}`", name, m.help, m.shown_by or "every broker"))
    return _table(("JMX (`quotahost:type=...`)", "Prometheus", "meaning", "shown by"), *rows)


def _calls() -> str:
    rows: list[tuple[str, ...]] = []
    for name, call in CALLS.items():
        types = (f"`{types}`" if types else "" for types in (call.arguments, call.answer))
        rows.append((f"`{name}`", *types, "yes" if call.waits else "no", call.doc))
    return _table(("call", "arguments", "answer", "the caller waits", "what it does"), *rows)


def _sentence(text: str) -> str:
    """The first sentence of a docstring or Javadoc, for a cell of a table."""
    plain = re.sub(r"\{@\w+ ([^}]+)\}", r"`\1`", " ".join(text.replace("``", "`").replace(":mod:", "").split()))
    found = _SENTENCE.match(plain)
    return (found[1] if found else plain).replace("|", "\\|")


def _modules() -> str:
    """Each file of the package and of the shim, with its first sentence."""
    python = {file: ast.get_docstring(ast.parse(file.read_text())) or "" for file in sorted(_PACKAGE.rglob("*.py"))}
    sql = {
        file: " ".join(_COMMENT.findall(file.read_text())[0].split("--")) for file in sorted(_PACKAGE.rglob("*.sql"))
    }
    java = {file: _JAVADOC.findall(file.read_text())[0].replace("\n *", "\n") for file in sorted(_SHIM.rglob("*.java"))}
    tables = [
        _table(
            (head, "what it is about"),
            *((f"`{file.relative_to(root)}`", _sentence(text)) for file, text in texts.items() if text),
        )
        for head, root, texts in (("Python", _PACKAGE, python), ("SQL", _PACKAGE, sql), ("Java", _SHIM, java))
    ]
    return "\n\n".join(tables)


#: The name of a section and the function that makes its table, by document.
TABLES: Final[dict[Path, tuple[str, Callable[[], str]]]] = {
    DOCS / "reference/properties.md": ("properties", broker.properties_table),
    DOCS / "reference/metrics.md": ("metrics", _metrics),
    DOCS / "reference/records.md": ("records", records.reference),
    DOCS / "reference/api.md": ("api", api.reference),
    DOCS / "reference/commands.md": ("commands", commands.reference),
    DOCS / "reference/host-protocol.md": ("protocol", _calls),
    DOCS / "reference/modules.md": ("modules", _modules),
    DOCS / "strimzi.md": ("strimzi", _names_of_strimzi),
    DOCS / "security.md": ("topics", _rights),
    DOCS / "conformance.md": ("conformance", conformance.table),
    DOCS / "reference/differences.md": ("differences", conformance.differences),
}


def renewed(document: Path, text: str) -> str:
    """Returns the document's text with a new table.

    Raises:
        ValueError: the section's markers don't stand in the text exactly once.
    """
    name, table = TABLES[document]
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    section = re.compile(f"^{begin}\n.*?^{end}$", re.DOTALL | re.MULTILINE)
    if len(section.findall(text)) != 1:
        raise ValueError(f"{document} must hold {begin} and {end} once, each on a line of its own")
    return section.sub(lambda _: f"{begin}\n{table().strip()}\n{end}", text)


def main() -> int:
    """Rewrites or checks all tables; returns the exit code, which is 1 if ``--check`` found a stale table."""
    stale = 0
    for document in TABLES:
        text = document.read_text(encoding="utf-8")
        new = renewed(document, text)
        if new == text:
            continue
        stale += 1
        if "--check" in sys.argv[1:]:
            print(f"{document} is out of date: run make tables", file=sys.stderr)
        else:
            document.write_text(new, encoding="utf-8")
    return int(bool(stale) and "--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
