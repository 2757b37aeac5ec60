"""Makes the tables of docs/conformance.md: each requirement of each document, and the tests that prove it.

``tests/requirements/*.toml`` hold the requirements, in our words. A test names those that it proves: in Python by
``@pytest.mark.proves("kip-13.delay")``, in Java by ``@Proves("kip-13.delay")``. So a requirement without a test shows
as such, and a test that is renamed or deleted can't be left in the table.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
REQUIREMENTS: Final = ROOT / "tests/requirements"
JAVA: Final = ROOT / "java-shim/src/test/java"
_PROVES: Final = re.compile(r"@Proves\(([^)]*)\)(?:\s|@\w+(?:\([^)]*\))?)*(?:public\s+)?(?:void|boolean)\s+(\w+)")
_COMMANDS: Final = {"driver": "make test-pipeline", "long": "make test-long"}


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a document asks for: its section there, our words for it, and why Kafka or quotahost differ, if they do."""

    section: str
    says: str
    differs: str = ""


@dataclass(frozen=True, slots=True)
class Proof:
    """A test, and the command that runs it if it isn't ``make test``."""

    path: Path
    name: str
    command: str = ""

    def __str__(self) -> str:
        """As a link in words."""
        spaced = (
            re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.name.removeprefix("test_"))
            if self.path.suffix == ".java"
            else self.name
        )
        words = spaced.removeprefix("test_").replace("_", " ").lower()
        by = f" (`{self.command}`)" if self.command else ""
        return f"[{words}](../{self.path.relative_to(ROOT)}){by}"


def documents() -> dict[str, tuple[str, dict[str, Requirement]]]:
    """By the document's short name: its title, and its requirements by their id, such as ``kip-13.delay``.

    Raises:
        TypeError: an entry has an unknown field, or lacks one.
    """
    found: dict[str, tuple[str, dict[str, Requirement]]] = {}
    for file in sorted(REQUIREMENTS.glob("*.toml")):
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        entries = {f"{file.stem}.{key}": Requirement(**entry) for key, entry in content["requirement"].items()}
        found[file.stem] = content["title"], entries
    return found


def proofs() -> dict[str, list[Proof]]:
    """The tests by the requirement that they prove; in the order of their paths."""
    found: defaultdict[str, list[Proof]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for requirement, proof in _python(path):
            found[requirement].append(proof)
    for path in sorted(JAVA.rglob("*.java")):
        for named, method in _PROVES.findall(path.read_text(encoding="utf-8")):
            for requirement in re.findall(r'"([^"]+)"', named):
                found[requirement].append(Proof(path, method))
    return dict(found)


def _python(path: Path) -> Iterator[tuple[str, Proof]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    everywhere = {name for node in tree.body if _is_pytestmark(node) for name, _ in _marks(node)}
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        marks = [mark for decorator in function.decorator_list for mark in _marks(decorator)]
        kinds = everywhere | {name for name, _ in marks}
        command = next((text for kind, text in _COMMANDS.items() if kind in kinds), "")
        for name, arguments in marks:
            if name == "proves":
                yield from ((requirement, Proof(path, function.name, command)) for requirement in arguments)


def _is_pytestmark(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and any(ast.unparse(target) == "pytestmark" for target in node.targets)


def _marks(node: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """The names of all ``pytest.mark.NAME`` in it, with the texts that each is called with."""
    called = {id(call.func): call for call in ast.walk(node) if isinstance(call, ast.Call)}
    for mark in ast.walk(node):
        if isinstance(mark, ast.Attribute) and ast.unparse(mark.value) == "pytest.mark":
            call = called.get(id(mark))
            texts = (
                [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)] if call else []
            )
            yield mark.attr, texts


def state(requirement: Requirement, tests: list[Proof]) -> str:
    """``done``, ``differs`` or ``not``: without a test nothing is done."""
    if not tests:
        return "not"
    return "differs" if requirement.differs else "done"


def table() -> str:
    """The summary, and a table for each document, in Markdown."""
    by_requirement = proofs()
    summary, tables = ["| document | requirements | done | differs | not |", "|---|---|---|---|---|"], []
    for title, entries in documents().values():
        states = [state(entry, by_requirement.get(key, [])) for key, entry in entries.items()]
        counts = [str(states.count(each)) for each in ("done", "differs", "not")]
        summary.append(f"| {title} | {len(entries)} | {' | '.join(counts)} |")
        tables.append(f"## {title}\n\n| section | requirement | state | proven by |\n|---|---|---|---|")
        tables[-1] += "".join("\n" + _row(entry, by_requirement.get(key, [])) for key, entry in entries.items())
    return "\n\n".join(["\n".join(summary), *tables])


def _row(requirement: Requirement, tests: list[Proof]) -> str:
    how = state(requirement, tests)
    shown = f"differs: {requirement.differs}" if how == "differs" else how
    return f"| {requirement.section} | {requirement.says} | {shown} | {'; '.join(map(str, tests))} |"
