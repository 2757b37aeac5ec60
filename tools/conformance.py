"""Makes the tables of docs/conformance.md: each requirement of each document, and the tests that prove it.

A requirement without a test shows as such, and a test that is renamed or deleted can't be left in the table.
"""

from tools.proofs import Proof, proofs
from tools.requirements import Document, Requirement, documents


def state(requirement: Requirement, tests: list[Proof]) -> str:
    """``done``, ``differs`` or ``not``: without a test nothing is done."""
    if not tests:
        return "not"
    return "differs" if requirement.differs else "done"


def table() -> str:
    """The summary, and a table for each document, in Markdown."""
    summary = ["| document | requirements | done | differs | not |", "|---|---|---|---|---|"]
    tables = []
    for document in documents().values():
        states = [state(entry, proofs().get(key, [])) for key, entry in document.requirements.items()]
        counts = " | ".join(str(states.count(each)) for each in ("done", "differs", "not"))
        summary.append(f"| {document.title} | {len(states)} | {counts} |")
        tables.append(_table(document))
    return "\n\n".join(["\n".join(summary), *tables])


def _table(document: Document) -> str:
    rows = [_row(entry, proofs().get(key, [])) for key, entry in document.requirements.items()]
    head = [f"## {document.title}", "", "| section | requirement | state | proven by |", "|---|---|---|---|"]
    return "\n".join([*head, *rows])


def _row(requirement: Requirement, tests: list[Proof]) -> str:
    how = state(requirement, tests)
    cells = [
        requirement.section,
        requirement.says or f"“{requirement.quote}”",
        f"differs: {requirement.today}" if how == "differs" else how,
        "; ".join(test.link("../") for test in tests),
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
