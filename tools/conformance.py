"""Makes the tables of docs/conformance.md and docs/reference/differences.md from the requirements and their tests.

The first file has each requirement of each document, each fault, and the tests that prove it. It shows if a requirement
has no test, and it can't name a test that was renamed or deleted. The second file lists where Kafka 4 or quotahost
differs from a document, and where documents contradict each other or themselves.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tools.requirements import ROOT, Contradiction, Document, Proof, Requirement, contradictions, documents, proofs

#: The faults come from no document; a table of their own shows on which parts a test has seen each fault.
FAULTS: Final = "faults"


def state(requirement: Requirement, tests: list[Proof]) -> str:
    """``done``, ``differs`` or ``not``; a requirement without a test is ``not``."""
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


# ---- differences ----


def differences() -> str:
    """Tables of where Kafka 4 or quotahost differs from a document, and of where documents disagree."""
    tables = [
        _differences(document)
        for document in documents().values()
        if any(requirement.differs for requirement in document.requirements.values())
    ]
    head = "## Where the documents disagree\n\n| documents | one says | the other says | here | tests |\n"
    return "\n\n".join([*tables, "\n".join([head + "|---|---|---|---|---|", *map(_contradiction, contradictions())])])


def _differences(document: Document) -> str:
    rows = [
        _cells(one.quote, one.today, one.why, _files(str(p.path.relative_to(ROOT)) for p in proofs().get(key, [])))
        for key, one in document.requirements.items()
        if one.differs
    ]
    head = [f"## {document.title}", "", "| the document says | today | why | tests |", "|---|---|---|---|"]
    return "\n".join([*head, *rows])


def _contradiction(c: Contradiction) -> str:
    titles = " and ".join(dict.fromkeys(documents()[name].title for name in c.between))
    return _cells(titles, c.one, c.other, c.here, _files(re.split("::|#", test)[0] for test in c.tests))


def _files(paths: Iterable[str]) -> str:
    return ", ".join(f"[{Path(path).stem}](../../{path})" for path in dict.fromkeys(paths))
