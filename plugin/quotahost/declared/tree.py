"""Reads YAML into plain values in which nothing is guessed, and tells the line of each.

All scalars stay text: a user ``007``, ``no`` or ``1e3`` is that name, and not a number or a truth value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from quotahost.declared.problems import DeclarationError

#: From a document's root to a value: keys of mappings and numbers in lists.
Way: TypeAlias = tuple[str | int, ...]
_NOTHING: Final = ("", "~", "null", "Null", "NULL")
_DEEPEST: Final = 20


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document of a file.

    Attributes:
        content: mappings, lists, texts and None.
        lines: the line of each value, by the way to it; from 1.
    """

    file: Path
    content: Any
    lines: dict[Way, int] = field(default_factory=dict)

    def place(self, way: Way) -> str:
        """File, line and path of a value, or of what is nearest to it: ``quotas.yaml:7: quotas[2].user``."""
        near = way
        while near and near not in self.lines:
            near = near[:-1]
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in way).lstrip(".")
        where = f"{self.file}:{self.lines.get(near, 1)}"
        return f"{where}: {path}" if path else where


def read_documents(file: Path) -> list[Document]:
    """The documents of a file; empty ones are left out.

    Raises:
        DeclarationError: it can't be read, or it is no YAML.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise DeclarationError(f"{file} can't be read: {reason}; name a YAML file, see docs/quotas.md") from None
    try:
        return [_document(file, node) for node in yaml.compose_all(text, yaml.BaseLoader) if _has_content(node)]
    except yaml.YAMLError as error:
        raise DeclarationError(_told(file, error)) from None


def _has_content(node: Any) -> bool:
    return node is not None and not (isinstance(node, yaml.ScalarNode) and _is_nothing(node))


def _told(file: Path, error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"{file}:{mark.line + 1}" if mark else str(file)
    return f"{where}: is no YAML: {getattr(error, 'problem', None) or error}; mend the line or the one before"


def _document(file: Path, root: yaml.Node) -> Document:
    made = Document(file, None)
    content = _value(root, (), made)
    return Document(file, content, made.lines)


def _value(node: yaml.Node, way: Way, document: Document) -> Any:
    document.lines[way] = node.start_mark.line + 1
    if len(way) > _DEEPEST:  # an alias may contain itself
        raise DeclarationError(f"{document.place(way[:3])}: is nested too deeply; see docs/quotas.md for the form")
    if isinstance(node, yaml.ScalarNode):
        return None if _is_nothing(node) else node.value
    if isinstance(node, yaml.SequenceNode):
        return [_value(each, (*way, number), document) for number, each in enumerate(node.value)]
    return dict(_entries(node, way, document))


def _is_nothing(node: yaml.ScalarNode) -> bool:
    return node.style is None and node.value in _NOTHING


def _entries(node: yaml.Node, way: Way, document: Document) -> Iterator[tuple[str, Any]]:
    seen = set()
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise DeclarationError(f"{document.place(way)}: has a key that is no text; write NAME: VALUE")
        if key.value in seen:
            line = key.start_mark.line + 1
            raise DeclarationError(f"{document.file}:{line}: {key.value} is there twice; remove one of both")
        seen.add(key.value)
        yield key.value, _value(value, (*way, key.value), document)
        # Where the key stands, not its value, which may begin on a later line.
        document.lines[(*way, key.value)] = key.start_mark.line + 1
