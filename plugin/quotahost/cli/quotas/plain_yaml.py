"""YAML of strangers as plain values, with the line of each; with an alias it is refused.

:func:`documents` goes event by event, so that nothing is built of an anchor or an alias, by which 300 bytes stand for
gigabytes. All scalars stay text: a user ``007``, ``no`` or ``1e3`` is that name, and not a number or a truth value.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from quotahost.base.errors import Unusable
from quotahost.base.text import escaped, printable

#: From a document's root to a value: keys of mappings and numbers in lists.
Way: TypeAlias = tuple[str | int, ...]
_NOTHING: Final = ("", "~", "null", "Null", "NULL")
# libyaml's where PyYAML was built with it: ten times as quick.
_LOADER: Final = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_DUMPER: Final[type[yaml.SafeDumper]] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@dataclass(slots=True)
class Document:
    """A YAML document: mappings, lists, texts and None, and by the way to each value its line, from 1."""

    file: Path
    content: Any = None
    lines: dict[Way, int] = field(default_factory=dict)

    def place(self, way: Way) -> str:
        """File, line and path of a value, or of what is nearest to it: ``quotas.yaml:7: quotas[2].user``."""
        near = way
        while near and near not in self.lines:
            near = near[:-1]
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{printable(part)}" for part in way).lstrip(".")
        where = f"{self.file}:{self.lines.get(near, 1)}"
        return f"{where}: {path}" if path else where

    def value(self, event: Any, events: Iterator[Any], way: Way = ()) -> Any:
        """The value that begins with an event; those that belong to it are taken from the others."""
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
                raise Unusable(f"{self.place(way)}: has a key that is no text; write NAME: VALUE")
            if key.value in content:
                raise Unusable(f"{self.file}:{line}: {printable(key.value)} is there twice; remove one of both")
            content[key.value] = self.value(next(events), events, (*way, key.value))
            # Where the key stands, not its value, which may begin on a later line.
            self.lines[(*way, key.value)] = line
        return content


def _until_end(events: Iterator[Any]) -> Iterator[Any]:
    """The events of a list or mapping, of which each takes those that belong to it; without the last."""
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            return
        yield event


def documents(file: Path) -> Iterator[Document]:
    """The documents of a file; empty ones are left out. Raises Unusable, with place and remedy."""
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
        problem = " ".join(str(error).split())  # of lines, in which it also stands where that is
        raise Unusable(f"{file} is no YAML: {problem}; mend the line or the one before") from None


def dumped(content: Any) -> str:
    """The YAML of plain values. Strange names stand in double quotes, in which our escapes mean the same characters."""
    return escaped(yaml.dump(content, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=1_000_000), keep="\n")


class _Dumper(_DUMPER):  # type: ignore[valid-type,misc]  # one of two classes
    """Without aliases, which reading refuses."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        # In double quotes what isn't printable is escaped: else PyYAML would write U+0085 as it is, a blank. So is what
        # standard output can't show (quotahost.cli.start).
        style = None if data.isascii() and data.isprintable() else '"'
        scalar: yaml.ScalarNode = self.represent_scalar("tag:yaml.org,2002:str", data, style)
        return scalar


_Dumper.add_representer(str, _Dumper.represent_str)
