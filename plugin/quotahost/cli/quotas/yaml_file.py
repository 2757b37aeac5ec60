"""Reads a YAML file into plain values in which nothing is guessed, and writes quotas as such a file.

Reading goes event by event, so that nothing is built of a file before it is refused: one that is too large, nested too
deeply, or has an anchor or an alias, by which 300 bytes stand for gigabytes. All scalars stay text: a user ``007``,
``no`` or ``1e3`` is that name, and not a number or a truth value. Each value's line is kept for the errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from quotahost.cli.quotas.plan import DEFAULT_NAME, Entity, Quotas
from quotahost.errors import QuotahostError
from quotahost.model import DEFAULT, Default
from quotahost.units.parse import UNLIMITED
from quotahost.units.show import shorthand

#: From a document's root to a value: keys of mappings and numbers in lists.
Way: TypeAlias = tuple[str | int, ...]
_NOTHING: Final = ("", "~", "null", "Null", "NULL")
_MOST_BYTES: Final = 64 * 1024 * 1024  # 100,000 entities are about 7 MB
_DEEPEST: Final = 20
# libyaml's where PyYAML was built with it: ten times as quick.
_LOADER: Final = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_DUMPER: Final[type[yaml.SafeDumper]] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class DeclarationError(QuotahostError):
    """A file or a cluster can't be used; each line of the message has place, value and remedy."""

    exit_code = 2


# ---- reading ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class Document:
    """One YAML document of a file.

    Attributes:
        content: mappings, lists, texts and None.
        lines: the line of each value, by the way to it; from 1.
    """

    file: Path
    content: Any = None
    lines: dict[Way, int] = field(default_factory=dict)

    def place(self, way: Way) -> str:
        """File, line and path of a value, or of what is nearest to it: ``quotas.yaml:7: quotas[2].user``."""
        near = way
        while near and near not in self.lines:
            near = near[:-1]
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in way).lstrip(".")
        where = f"{self.file}:{self.lines.get(near, 1)}"
        return f"{where}: {path}" if path else where


def read_documents(file: Path) -> Iterator[Document]:
    """The documents of a file; empty ones are left out.

    Raises:
        DeclarationError: it can't be read, or it is no YAML, or none of the form that is taken.
    """
    try:
        with file.open("rb") as stream:
            raw = stream.read(_MOST_BYTES + 1)
        text = raw.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise DeclarationError(f"{file} can't be read: {reason}; name a YAML file, see docs/quotas.md") from None
    if len(raw) > _MOST_BYTES:
        raise DeclarationError(f"{file} has more than {_MOST_BYTES:,} bytes; divide it into several files")
    try:
        events = yaml.parse(text, Loader=_LOADER)
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                document = Document(file)
                document.content = _value(next(events), events, (), document)
                if document.content is not None:
                    yield document
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file}:{mark.line + 1}" if mark else str(file)
        problem = getattr(error, "problem", None) or error
        raise DeclarationError(f"{where}: is no YAML: {problem}; mend the line or the one before") from None


def _value(event: Any, events: Iterator[Any], way: Way, document: Document) -> Any:
    """The value that begins with an event; those that belong to it are taken from the others."""
    document.lines[way] = event.start_mark.line + 1
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        raise DeclarationError(f"{document.place(way)}: has an alias or anchor (* or &); write out what it stands for")
    if isinstance(event, yaml.ScalarEvent):
        return None if not event.style and event.value in _NOTHING else event.value
    if len(way) >= _DEEPEST:
        raise DeclarationError(f"{document.place(way[:3])}: is nested too deeply; see docs/quotas.md for the form")
    if isinstance(event, yaml.SequenceStartEvent):
        items = _until(yaml.SequenceEndEvent, events)
        return [_value(item, events, (*way, number), document) for number, item in enumerate(items)]
    return _mapping(events, way, document)


def _mapping(events: Iterator[Any], way: Way, document: Document) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for key in _until(yaml.MappingEndEvent, events):
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarEvent) or key.anchor is not None:
            raise DeclarationError(f"{document.place(way)}: has a key that is no text; write NAME: VALUE")
        if key.value in content:
            raise DeclarationError(f"{document.file}:{line}: {key.value} is there twice; remove one of both")
        content[key.value] = _value(next(events), events, (*way, key.value), document)
        # Where the key stands, not its value, which may begin on a later line.
        document.lines[(*way, key.value)] = line
    return content


def _until(end: type[Any], events: Iterator[Any]) -> Iterator[Any]:
    for event in events:
        if isinstance(event, end):
            return
        yield event


# ---- writing ---------------------------------------------------------------------------------------

_HEAD: Final = "# Client quotas of a Kafka cluster; see `quotahost quotas --help`.\n"


def in_yaml(quotas: Quotas) -> str:
    """The text of a file that declares these quotas; entities as in tables, rates in the shortest exact form."""
    entries: dict[str, list[dict[str, Any]]] = {"quotas": [], "cluster-quotas": []}
    for entity in sorted(quotas, key=Entity.order):
        rates = {key: _rate(value) for key, value in sorted(quotas[entity].items()) if declarable(entity, value)}
        entry = {kind: _name(name) for kind, name in entity.parts().items()} | rates
        entries["cluster-quotas" if entity.in_cluster else "quotas"].append(entry)
    content = {name: section for name, section in entries.items() if section or name == "quotas"}
    dumped: str = yaml.dump(content, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=1_000_000)
    return _HEAD + dumped


def declarable(entity: Entity, value: float) -> bool:
    """Whether a file can say it: Kafka's controller lets NaN and infinity pass for two keys, and limits nobody then."""
    return not math.isnan(value) and (entity.in_cluster or not math.isinf(value))


def _rate(value: float) -> str | int | float:
    """``10M``, ``unlimited``, or the number."""
    if math.isinf(value):
        return UNLIMITED
    return shorthand(value) or (int(value) if value.is_integer() else value)


def _name(name: str | Default) -> Any:
    if name is DEFAULT:
        return DEFAULT_NAME
    return {"name": name} if name == DEFAULT_NAME else str(name)


class _Dumper(_DUMPER):  # type: ignore[valid-type,misc]  # one of two classes
    """Without aliases, which reading refuses."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write each value where it belongs."""
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """Escape what isn't printable: in other quotes PyYAML would write U+0085 as it is, which reads as a blank."""
        scalar: yaml.ScalarNode = self.represent_scalar(
            "tag:yaml.org,2002:str", data, None if data.isprintable() else '"'
        )
        return scalar


_Dumper.add_representer(str, _Dumper.represent_str)
