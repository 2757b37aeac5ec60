"""Makes docs/reference/api.md, the reference of the public packages: each name with its form and its docstring.

The public names of a package are in its ``__all__``. The text of a class, function or method is its docstring. The text
of an attribute or constant is the comment behind or above it, or the docstring below it. All is read from the source.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import Final

PACKAGES: Final = ("api", "model", "units", "throttling", "testing")
_ROOT: Final = Path(__file__).resolve().parents[1] / "plugin"
_MARKUP: Final = ((r":mod:", ""), (r":\w+:`~?(?:quotahost[\w.]*\.)?([^`]+)`", r"`\1`"), (r"``", "`"))
_ENTRY: Final = re.compile(r"(?m)^ {4}(\*{0,2}\w+): ")


def reference() -> str:
    """A section for each public package, with a subsection for each of its names."""
    return "\n\n".join(part for package in PACKAGES for part in _package(f"quotahost.{package}"))


def _source(module: str) -> Path:
    path = _ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _package(package: str) -> Iterator[str]:
    tree = ast.parse(_source(package).read_text())
    yield f"## `{package}`"
    yield _text(ast.get_docstring(tree))
    home = {name.name: node.module for node in tree.body if isinstance(node, ast.ImportFrom) for name in node.names}
    public = next(ast.literal_eval(_value(node)) for node in tree.body if names(node) == ["__all__"])
    for name in sorted(public, key=str.lower):
        yield from _name(name, _source(home.get(name) or package).read_text())


def _name(name: str, source: str) -> Iterator[str]:
    body = ast.parse(source).body
    at, node = next((i, node) for i, node in enumerate(body) if name in names(node))
    yield f"### `{name}`"
    if isinstance(node, ast.FunctionDef):
        yield f"```python\n{_signature(node)}\n```"
        yield _text(ast.get_docstring(node))
    elif isinstance(node, ast.ClassDef):
        yield _text(ast.get_docstring(node))
        if fields := list(_fields(node, source)):
            yield "\n".join(["| attribute | type, or value | meaning |", "|---|---|---|", *fields])
        for each in node.body:
            said = ast.get_docstring(each) if isinstance(each, ast.FunctionDef) else None
            if not isinstance(each, ast.FunctionDef) or not said or said.startswith("Private"):
                continue
            if each.name == "__init__" or each.name[0] != "_":
                form = _signature(each).replace("__init__", name, 1).removesuffix(" -> None" * (each.name[0] == "_"))
                yield f"- `{form}`\n\n" + indent(_text(said), "  ")
    else:
        below = [each.value for each in body[at + 1 :][:1] if isinstance(each, ast.Expr)]
        texts = [str(each.value) for each in below if isinstance(each, ast.Constant)]
        yield _text(texts[0] if texts else comment(node, source))


def names(node: ast.stmt) -> list[str]:
    """The names that a statement defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _value(node: ast.stmt) -> ast.expr:
    """The type that an assignment declares, or its value if it declares no type."""
    assert isinstance(node, ast.Assign | ast.AnnAssign)
    return node.annotation if isinstance(node, ast.AnnAssign) else node.value


def _fields(owner: ast.ClassDef, source: str) -> Iterator[str]:
    for node in owner.body:
        for name in names(node) if isinstance(node, ast.Assign | ast.AnnAssign) else ():
            kind = (ast.unparse(_value(node)) + _default(node)).replace("|", "\\|")
            said = comment(node, source)
            if not name.startswith("_") and "Private" not in said:
                yield f"| `{name}` | `{kind}` | {said} |"


def _default(node: ast.stmt) -> str:
    """`` = DEFAULT`` if an attribute with a type has a default that is a plain value."""
    value = node.value if isinstance(node, ast.AnnAssign) else None
    if isinstance(value, ast.Call):  # dataclasses.field()
        value = next((keyword.value for keyword in value.keywords if keyword.arg == "default"), None)
    if value is None or any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(value)):
        return ""
    return f" = {ast.unparse(value)}"


def comment(node: ast.stmt, source: str) -> str:
    """The comment behind a statement, or the one above it if there is none behind."""
    lines = source.splitlines()
    behind = lines[node.lineno - 1][node.end_col_offset :] if node.lineno == node.end_lineno else ""
    if found := re.search(r"# (.*)", behind):
        return _text(found[1])
    above: list[str] = []
    for line in reversed(lines[: node.lineno - 1]):
        if not (comment := re.match(r"\s*#:? (.*)", line)):
            break
        above.insert(0, comment[1])
    return _text(" ".join(above))


def _signature(function: ast.FunctionDef) -> str:
    arguments = f"({ast.unparse(function.args).removeprefix('self').removeprefix(', ')})"
    is_property = any(ast.unparse(each) == "property" for each in function.decorator_list)
    answer = ast.unparse(function.returns) if function.returns else "None"
    return f"{function.name}{'' if is_property else arguments} -> {answer}"


def _text(docstring: str | None) -> str:
    """A docstring as Markdown."""
    text = docstring or ""
    for form, instead in _MARKUP:
        text = re.sub(form, instead, text)
    # In the sections of Google's style an entry begins with four blanks and its name.
    text = re.sub(r"(?m)^(Args|Raises|Returns):\n", r"\1:\n\n", text)
    return _ENTRY.sub(r"- `\1`: ", text).strip()
