"""``documents`` reads untrusted YAML as plain values, with the line of each value, and refuses aliases.

:func:`documents` reads event by event and builds no alias, because 300 bytes with aliases can stand for gigabytes. All
scalars stay text: a user ``007``, ``no`` or ``1e3`` is that name, and not a number or a boolean.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from quotahost.base.errors import Unusable
from quotahost.base.text import escaped, printable

#: The path from a document's root to a value: keys of mappings and indexes of lists.
Way: TypeAlias = tuple[str | int, ...]
_NOTHING: Final = ("", "~", "null", "Null", "NULL")
# If PyYAML was built with libyaml, its loader is ten times as fast.
_LOADER: Final = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_DUMPER: Final[type[yaml.SafeDumper]] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@dataclass(slots=True)
class Document:
    """A YAML document: its content (mappings, lists, texts, None), and the line of each value by its way, from 1."""

    file: Path
    content: Any = None
    lines: dict[Way, int] = field(default_factory=dict)

    def place(self, way: Way) -> str:
        """Return file, line and path of a value: ``quotas.yaml:7: quotas[2].user``; the line may be a parent's."""
        near = way
        while near and near not in self.lines:
            near = near[:-1]
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{printable(part)}" for part in way).lstrip(".")
        where = f"{self.file}:{self.lines.get(near, 1)}"
        return f"{where}: {path}" if path else where

    def value(self, event: Any, events: Iterator[Any], way: Way = ()) -> Any:
        """Return the value that begins with ``event``; the value's other events are taken from ``events``."""
        self.lines[way] = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise Unusable(f"{self.place(way)}: has an alias or anchor (* or &); write out what it stands for")
        if isinstance(event, yaml.ScalarEvent):
            return None if not event.style and event.value in _NOTHING else event.value
        if isinstance(event, yaml.SequenceStartEvent):
            return [self.value(item, events, (*way, number)) for number, item in enumerate(_until_end(events))]
        content: dict[str, Any] = {}
        for key in _until_end(events):
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarEvent) or key.anchor is not None:
                raise Unusable(f"{self.place(way)}: has a key that is not a text; write NAME: VALUE")
            if key.value in content:
                raise Unusable(f"{self.file}:{line}: {printable(key.value)} is there twice; remove one of the two")
            content[key.value] = self.value(next(events), events, (*way, key.value))
            # The line is the key's, because the value may begin on a later line.
            self.lines[(*way, key.value)] = line
        return content


def _until_end(events: Iterator[Any]) -> Iterator[Any]:
    """Yield the first event of each item of a list or mapping; the caller takes the other events of the item."""
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            return
        yield event


def documents(file: Path) -> Iterator[Document]:
    """Yield the documents of a file, except empty ones. Raises Unusable, with place and remedy."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise Unusable(f"{file} can't be read: {reason}; name a YAML file, see docs/quotas.md") from None
    try:
        events = yaml.parse(text, Loader=_LOADER)
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                document = Document(file)
                document.content = document.value(next(events), events)
                if document.content is not None:
                    yield document
    except (yaml.YAMLError, RecursionError) as error:
        problem = " ".join(str(error).split())  # the error has several lines, and names the place
        raise Unusable(f"{file} is not YAML: {problem}; correct the line or the one before") from None


def dumped(content: Any) -> str:
    """Return plain values as YAML. Unusual names are in double quotes, where our escapes mean the same characters."""
    return escaped(yaml.dump(content, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=1_000_000), keep="\n")


class _Dumper(_DUMPER):  # type: ignore[valid-type,misc]  # one of two classes
    """Writes no aliases, because :func:`documents` refuses them."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        # In double quotes PyYAML escapes unprintable characters; otherwise it may write U+0085, which it reads as a
        # blank. Characters that standard output can't show are escaped, too (quotahost.cli.start).
        style = None if data.isascii() and data.isprintable() else '"'
        scalar: yaml.ScalarNode = self.represent_scalar("tag:yaml.org,2002:str", data, style)
        return scalar


_Dumper.add_representer(str, _Dumper.represent_str)
