"""Reads the requirements of the five documents, and finds the tests that prove them.

``tests/requirements`` has a file of requirements for each document, and a file of the contradictions. The models
(:mod:`tools.figures`) give the numbers in braces. A test names the requirement that it proves: in Python by
``@pytest.mark.proves("kip-13.delay")``, in Java by ``@Proves("kip-13.delay")``.
"""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
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
    """A sentence of a document that asks for something."""

    section: str  # where it stands in the document
    says: str = ""  # the sentence in our words; not needed if there is a quote
    quote: str = ""  # the document's own words, if Kafka or quotahost differs from them
    today: str = ""  # what Kafka or quotahost does instead
    why: str = ""  # the reason

    @property
    def differs(self) -> bool:
        """Whether Kafka or quotahost differs from the document."""
        return bool(self.today)


@dataclass(frozen=True, slots=True)
class Document:
    """One of the five documents: its title, and its requirements by their ids, such as ``kip-13.delay``."""

    title: str
    requirements: dict[str, Requirement]


@cache
def documents() -> dict[str, Document]:
    """The five documents by their short names, such as ``kip-13``.

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


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two sentences, of one document or of two, that can't both hold; what holds here, and its tests."""

    between: tuple[str, str]
    one: str
    other: str
    here: str
    tests: tuple[str, ...] = ()


def contradictions() -> list[Contradiction]:
    """All contradictions.

    Raises:
        TypeError: an entry has an unknown field, or lacks one.
        KeyError: a number is not among the figures.
    """
    content = tomllib.loads(CONTRADICTIONS.read_text(encoding="utf-8"))
    return [Contradiction(**filled(entry)) for entry in content["contradiction"]]


def is_there(test: str) -> bool:
    """Whether the file has this test, which is ``path::name`` in Python and ``path#method`` in Java."""
    path, separator, name = re.split("(::|#)", test, maxsplit=1)
    file = ROOT / path
    defined = rf"^\s*def {name}\(" if separator == "::" else rf"^\s+(?:public )?(?:void|boolean) {name}\("
    return file.exists() and bool(re.search(defined, file.read_text(encoding="utf-8"), re.MULTILINE))


# ---- the tests ----

JAVA: Final = ROOT / "java-shim/src/test/java"
_PROVES: Final = re.compile(r"@Proves\(([^)]*)\)(?:\s|@\w+(?:\([^)]*\))?)*(?:public\s+)?(?:void|boolean)\s+(\w+)")
_MOUNTS: Final = re.compile(r"\b(small_volume|node_with_two_volumes|NO_VOLUME)\b")
PARTS: Final = {"broker": "broker", "pipeline": "Spark", "clients": "eight client libraries"}
_CLUSTER: Final = re.compile(r"\bcluster\b|\bCluster\(")
_COMMANDS: Final = {"driver": "make test-pipeline", "long": "make test-long", "clients": "make test-clients"}


@dataclass(frozen=True, slots=True)
class Proof:
    """A test: the command that runs it if it isn't ``make test``, and what it needs."""

    path: Path
    name: str
    command: str = ""
    mounts: bool = False  # it mounts a file system
    cluster: bool = False  # it runs on several brokers

    def link(self, up: str) -> str:
        """A link to the test, in words, from a document that lies ``up`` below the root, such as ``../``."""
        spaced = re.sub(r"(?<=[a-zA-Z0-9])(?=[A-Z])", " ", self.name) if self.path.suffix == ".java" else self.name
        words = spaced.removeprefix("test_").replace("_", " ").lower()
        return f"[{words}]({up}{self.path.relative_to(ROOT)})" + (
            f" ({', '.join(self._conditions())})" if self._conditions() else ""
        )

    def seen_on(self) -> str:
        """The largest real part that the test runs on; ``snippet`` if it is code of quotahost alone."""
        folders = self.path.relative_to(ROOT).parts
        if folders[0] == "tests" and folders[1] in PARTS:
            return "three brokers" if self.cluster and folders[1] == "broker" else PARTS[folders[1]]
        return "snippet"

    def _conditions(self) -> list[str]:
        return [f"`{self.command}`"] * bool(self.command) + ["skipped where mounting isn't allowed"] * self.mounts


@cache
def proofs() -> dict[str, list[Proof]]:
    """The tests by the id of the requirement that they prove; in the order of their paths."""
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
    source = path.read_text(encoding="utf-8")
    tree, mounts = ast.parse(source), bool(_MOUNTS.search(source))
    everywhere = {name for node in tree.body if _is_pytestmark(node) for name, _ in _marks(node)}
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        marks = [mark for decorator in function.decorator_list for mark in _marks(decorator)]
        kinds = everywhere | {name for name, _ in marks}
        command = next((text for kind, text in _COMMANDS.items() if kind in kinds), "")
        proof = Proof(path, function.name, command, mounts, bool(_CLUSTER.search(ast.unparse(function))))
        for name, texts in marks:
            if name == "proves":
                yield from ((requirement, proof) for requirement in texts)


def _is_pytestmark(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and any(ast.unparse(target) == "pytestmark" for target in node.targets)


def _marks(node: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """The names of all ``pytest.mark.NAME`` in the node, with the texts that each mark is called with."""
    called = {id(call.func): call.args for call in ast.walk(node) if isinstance(call, ast.Call)}
    for mark in ast.walk(node):
        if isinstance(mark, ast.Attribute) and ast.unparse(mark.value) == "pytest.mark":
            constants = [a.value for a in called.get(id(mark), []) if isinstance(a, ast.Constant)]
            yield mark.attr, [value for value in constants if isinstance(value, str)]
