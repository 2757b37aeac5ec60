"""Makes the tables of docs/conformance.md: each requirement of each document, each fault, and the tests that prove it.

A requirement without a test shows as such, and a test that is renamed or deleted can't be left in the table.
"""

from typing import Final

from tools.proofs import Proof, proofs
from tools.requirements import Document, Requirement, documents

#: The faults are no document's: a table of their own says on which parts a test has seen each.
FAULTS: Final = "faults"


def state(requirement: Requirement, tests: list[Proof]) -> str:
    """``done``, ``differs`` or ``not``: without a test nothing is done."""
    if not tests:
        return "not"
    return "differs" if requirement.differs else "done"


def table() -> str:
    """The summary, and a table for each document, in Markdown."""
    requirements = {name: document for name, document in documents().items() if name != FAULTS}
    summary = ["| document | requirements | done | differs | not |", "|---|---|---|---|---|"]
    for document in requirements.values():
        states = [state(entry, proofs().get(key, [])) for key, entry in document.requirements.items()]
        counts = " | ".join(str(states.count(each)) for each in ("done", "differs", "not"))
        summary.append(f"| {document.title} | {len(states)} | {counts} |")
    tables = [_table(document) for document in requirements.values()]
    return "\n\n".join(["\n".join(summary), *tables, _faults(documents()[FAULTS])])


def _faults(document: Document) -> str:
    head = [f"## {document.title}", "", "| of | fault, and what happens then | seen on | test |", "|---|---|---|---|"]
    rows = []
    for key, fault in document.requirements.items():
        tests = proofs().get(key, [])
        parts = dict.fromkeys(test.seen_on() for test in tests)
        rows.append(_cells(fault.section, fault.says, ", ".join(parts), _links(tests)))
    return "\n".join([*head, *rows])


def _table(document: Document) -> str:
    rows = [_row(entry, proofs().get(key, [])) for key, entry in document.requirements.items()]
    head = [f"## {document.title}", "", "| section | requirement | state | proven by |", "|---|---|---|---|"]
    return "\n".join([*head, *rows])


def _row(requirement: Requirement, tests: list[Proof]) -> str:
    how = state(requirement, tests)
    says = requirement.says or f"“{requirement.quote}”"
    return _cells(
        requirement.section, says, f"differs: {requirement.today}" if how == "differs" else how, _links(tests)
    )


def _links(tests: list[Proof]) -> str:
    return "; ".join(test.link("../") for test in tests)


def _cells(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
