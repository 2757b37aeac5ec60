"""Settings as understood, for ``doctor``, and the table of all properties, for the README."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from quotahost.settings.declaration import PREFIX, Property, declared
from quotahost.settings.secrets import is_secret_property

HIDDEN: Final = "***"
_SET: Final = "broker properties"
Models = Mapping[str, type[BaseModel] | None]


@dataclass(frozen=True, slots=True)
class Row:
    """One property as understood.

    Attributes:
        property: its full name.
        value: in full, with its unit; ``***`` for a secret.
        where: where the value comes from, in words.
    """

    property: str
    value: str
    where: str


def describe(settings: BaseModel, models: Models | None = None) -> list[Row]:
    """Every property as understood, in the order of the declarations; unset families have no rows.

    Args:
        settings: what to describe.
        models: the configured plugins' section models by name, which say what is a secret. Without a model a
            property is a secret if its name says so: ``password``, ``secret``, ``token``, ``key``, ``jaas``.
    """
    rows: list[Row] = []
    for declaration in declared(type(settings)):
        is_family = declaration.is_family
        rows += _family(declaration, settings, models or {}) if is_family else [_row(declaration, settings)]
    return rows


def _row(declaration: Property, settings: Any) -> Row:
    *outer, attribute = declaration.path
    for step in outer:
        settings = getattr(settings, step)
    value = declaration.unit.show(getattr(settings, attribute))
    where = _SET if attribute in settings.model_fields_set else "default"
    if where != _SET and attribute == "fallback_action":  # the one default that an operator must not guess at
        where = f"default ({declaration.default})"
    return Row(PREFIX + declaration.name, value, where)


def _family(declaration: Property, settings: Any, models: Models) -> Iterator[Row]:
    for name, value in getattr(settings, declaration.path[0]).items():
        if isinstance(value, dict):  # plugin.NAME.*
            for key, text in value.items():
                shown = HIDDEN if is_secret_property(key, models.get(name)) else text
                yield Row(f"{PREFIX}plugin.{name}.{key}", shown, _SET)
        else:
            # kafka.* and static.kafka.admin.*: every value of theirs is a secret.
            yield Row(f"{PREFIX}{declaration.name.removesuffix('*')}{name}", HIDDEN, _SET)


def table(declarations: Iterable[Property]) -> str:
    """A Markdown table; without the common prefix, which the text around it must name."""
    lines = ["| property | default | unit | live | meaning |", "|---|---|---|---|---|"]
    lines += [_line(declaration) for declaration in declarations]
    return "\n".join(lines) + "\n"


def _line(p: Property) -> str:
    default = f"`{p.default}`" if p.default and " " not in p.default else p.default
    cells = (f"`{p.name}`", default, p.unit.name, "yes" if p.live else "no", p.doc)
    # An unescaped | would end the cell.
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
