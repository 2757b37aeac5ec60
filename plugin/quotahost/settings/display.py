"""Settings as understood, for ``doctor``, and the table of all properties, for the README."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from quotahost.settings.declaration import PREFIX, Property, declared
from quotahost.settings.secrets import is_secret_property

HIDDEN: Final = "***"
_MARKERS: Final = ("<!-- properties -->", "<!-- /properties -->")
Models = Mapping[str, type[BaseModel] | None]


@dataclass(frozen=True, slots=True)
class Row:
    """One property as understood.

    Attributes:
        property: its full name.
        value: in full, with its unit; ``***`` for a secret.
        is_default: whether it was left out.
        where: where the value comes from, in words.
    """

    property: str
    value: str
    is_default: bool
    where: str


def rows(settings: BaseModel, models: Models) -> Iterator[Row]:
    """Every property of the settings, in the order of their declarations; unset families have none."""
    for declaration in declared(type(settings)):
        if declaration.is_family:
            yield from _family(declaration, settings, models)
        else:
            yield _row(declaration, settings)


def _row(declaration: Property, settings: Any) -> Row:
    *outer, attribute = declaration.path
    for step in outer:
        settings = getattr(settings, step)
    is_set = attribute in settings.model_fields_set
    conditional = declaration.path == ("fallback_action",)
    told = f"default ({declaration.default})" if conditional else "default"
    value = declaration.unit.show(getattr(settings, attribute))
    return Row(PREFIX + declaration.name, value, not is_set, "broker properties" if is_set else told)


def _family(declaration: Property, settings: Any, models: Models) -> Iterator[Row]:
    family: dict[str, Any] = getattr(settings, declaration.path[0])
    for name, value in family.items():
        if not isinstance(value, dict):
            yield Row(
                f"{PREFIX}{declaration.name.removesuffix('*')}{name}", HIDDEN, False, "broker properties"
            )
            continue
        for key, text in value.items():
            shown = HIDDEN if is_secret_property(key, models.get(name)) else text
            yield Row(f"{PREFIX}plugin.{name}.{key}", shown, False, "broker properties")


def table(declarations: Iterable[Property]) -> str:
    """A Markdown table; without the common prefix, which the text around it must name."""
    lines = ["| property | default | unit | live | meaning |", "|---|---|---|---|---|"]
    lines += [_line(declaration) for declaration in declarations]
    return "\n".join(lines) + "\n"


def _line(p: Property) -> str:
    default = f"`{p.default}`" if p.default and " " not in p.default else p.default
    cells = (f"`{p.name}`", default, p.unit.name, "yes" if p.live else "no", p.doc)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def with_table(text: str, properties: str) -> str:
    """The text (the README's) with what stands between its ``properties`` markers replaced.

    Raises:
        ValueError: the markers are not there exactly once.
    """
    begin, end = _MARKERS
    pattern = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise ValueError(f"the text must hold {begin} and {end} once, each on a line of its own")
    return pattern.sub(lambda _: f"{begin}\n{properties}{end}", text)
