"""Checks the sources: metrics are in the catalogue, no private module is imported, only the console prints."""

import ast
from pathlib import Path

import quotahost
from quotahost.broker.metrics import CATALOGUE, COUNTER, GAUGE
from quotahost.cli import console

PACKAGE = Path(quotahost.__file__).parent
NODES = [
    (f"{path.relative_to(PACKAGE)}:{getattr(node, 'lineno', 0)}", path, node)
    for path in sorted(PACKAGE.rglob("*.py"))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
]
CALLS = [(place, path, node) for place, path, node in NODES if isinstance(node, ast.Call)]
METHODS = {"gauge": GAUGE, "count": COUNTER}


def test_every_number_that_is_shown_stands_in_the_catalogue_with_its_kind_and_no_name_twice() -> None:
    kinds = {(metric.type, metric.attribute): metric.kind for metric in CATALOGUE}
    found = 0
    for place, _, node in CALLS:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in METHODS and len(node.args) >= 3:
            type, _, attribute = node.args[:3]
            if isinstance(type, ast.Constant) and isinstance(attribute, ast.Constant):
                found += 1
                assert kinds.get((str(type.value), str(attribute.value))) is METHODS[called], place
    assert found > 20
    assert len(kinds) == len(CATALOGUE) == len({metric.prometheus for metric in CATALOGUE})


def test_no_private_module_of_a_library_is_imported() -> None:
    """A new release of the library may rename or remove a private module without notice."""
    for place, _, node in NODES:
        names = node.names if isinstance(node, ast.Import | ast.ImportFrom) and not getattr(node, "level", 0) else []
        for alias in names:
            name = f"{getattr(node, 'module', '')}.{alias.name}".lstrip(".")
            private = [part for part in name.split(".") if part.startswith("_") and not part.startswith("__")]
            assert not private or name.startswith("quotahost."), f"{place}: {name} is private"


def test_only_the_console_writes_to_a_terminal() -> None:
    ways = {"print", "echo", "secho", "Console", "write"}
    for place, path, node in CALLS:
        if path.is_relative_to(PACKAGE / "cli") and path != Path(console.__file__):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) in ("typer", "sys.stdout"):
                name = node.func.attr
            assert name not in ways, f"{place}: only quotahost.cli.console prints"
