"""quotahost uses no private module of a library: a release of it may rename or remove that without a word."""

import ast
from collections.abc import Iterator
from pathlib import Path

import quotahost

PACKAGE = Path(quotahost.__file__).parent


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_private_module_of_a_library_is_imported() -> None:
    for path in PACKAGE.rglob("*.py"):
        for name in imported(path):
            private = [part for part in name.split(".") if part.startswith("_") and not part.startswith("__")]
            assert not private or name.startswith("quotahost."), f"{path}: {name}"
