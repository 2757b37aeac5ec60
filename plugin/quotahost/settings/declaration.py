"""The one declaration from which a broker property is parsed, documented, shown and listed as live."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

from quotahost.errors import QuotahostError
from quotahost.text import printable
from quotahost.units import Unit

PREFIX: Final = "client.quota.callback."


_TEXT: Final = Unit("", lambda value: "none" if value is None else str(value))


class Frozen(BaseModel):
    """Base of all settings: immutable, closed, and silent about its input in errors (secrets)."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


@dataclass(frozen=True, slots=True)
class Property:
    """A declared property.

    Attributes:
        name: without the common prefix; one that ends in ``*`` stands for a family of properties.
        path: the attributes that lead to its value in ``Settings``.
        default: as an operator would write it, or words that say what holds; "" for none.
        unit: how its value is counted and shown.
        live: whether a change takes effect without a restart of the broker.
        doc: what it means.
    """

    name: str
    path: tuple[str, ...]
    default: str
    unit: Unit
    live: bool
    doc: str

    @property
    def is_family(self) -> bool:
        """Whether it stands for many properties, such as ``kafka.*``."""
        return self.name.endswith("*")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one property, remedy included; the value is None where it must not be told."""

    property: str
    wrong: str
    value: str | None = None

    def __str__(self) -> str:
        """One line; whatever could break it is escaped."""
        value = "" if self.value is None else f"={printable(self.value)}"
        return f"{printable(self.property)}{value}: {self.wrong}"


class SettingsError(QuotahostError, ValueError):
    """Everything that is wrong with the broker's properties, each with its remedy."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        """Take at least one problem."""
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems]
        super().__init__(lines[0] if len(lines) == 1 else "\n - ".join([f"{len(lines)} problems:", *lines]))


def declare(
    name: str,
    doc: str,
    *,
    default: Any = None,
    live: bool = True,
    told: str | None = None,
    shown: bool = True,
) -> Any:
    """A pydantic field that is the property ``name``; its type brings the parser and the unit.

    Args:
        name: without the common prefix.
        doc: what it means, for the README and ``doctor``.
        default: as an operator would write it; a function makes it of the fields before it.
        live: whether a change takes effect without a restart.
        told: the default in words, where the default itself does not say it.
        shown: whether ``repr`` of the settings shows it.
    """
    extra: dict[str, Any] = {"property": name, "live": live, "told": told}
    given = {"default_factory": default} if callable(default) else {"default": default}
    return Field(**given, validate_default=True, description=doc, repr=shown, json_schema_extra=extra)


def declared(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[Property]:
    """All properties of a settings model and of the models nested in it, in their order."""
    for attribute, field in model.model_fields.items():
        here = (*path, attribute)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from declared(field.annotation, here)
        else:
            yield _property(here, field)


def _property(path: tuple[str, ...], field: FieldInfo) -> Property:
    extra: dict[str, Any] = field.json_schema_extra  # type: ignore[assignment]  # declare() gives a dict
    default = extra["told"] if extra["told"] is not None else str(field.default or "")
    unit = next((m for m in field.metadata if isinstance(m, Unit)), _TEXT)
    return Property(extra["property"], path, default, unit, extra["live"], field.description or "")
