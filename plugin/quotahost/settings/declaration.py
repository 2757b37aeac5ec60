"""Declares a broker property as one field of a settings model, from which everything else follows.

The field's type says how the text is parsed and shown. Its docstring is what the documents and ``doctor`` print. The
arguments of :func:`declare` are the name, the default, and whether a change takes effect live. If a property is wrong,
a :class:`Problem` says why.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import ErrorDetails

from quotahost.base.errors import QuotahostError
from quotahost.base.text import printable, shortened
from quotahost.units.show import Unit

PREFIX: Final = "client.quota.callback."
_TEXT: Final = Unit("", lambda value: "none" if value is None else str(value))


class Frozen(BaseModel):
    """Base of all settings: immutable, no unknown fields; errors never repeat the input, which may be a secret.

    The docstring below a field is the field's description.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True)


@dataclass(frozen=True, slots=True)
class Property:
    """A declared property."""

    name: str  # without the common prefix; a name that ends in ``*`` stands for a family of properties
    path: tuple[str, ...]  # the attributes that lead to its value in ``Settings``
    default: str  # as an operator would write it, or words that describe it; "" for none
    unit: Unit  # the value's unit, and how the value is shown
    live: bool  # whether a change takes effect without a restart of the broker
    doc: str  # the property's meaning

    @property
    def is_family(self) -> bool:
        return self.name.endswith("*")


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of one property, and its remedy."""

    property: str  # the full name; a name that ends in ``.*`` stands for all names that begin so
    wrong: str  # what is wrong, and the remedy
    value: str | None = None  # None if the value may be a secret
    unknown: bool = False  # whether quotahost reads no property of this name now, whatever its value

    def among(self, names: Collection[str]) -> set[str]:
        """The names that the problem is about; only ``property`` if it is among them, even if it ends in ``*``."""
        if self.property in names or not self.property.endswith("*"):
            return {self.property} & set(names)
        return {name for name in names if name.startswith(self.property.removesuffix("*"))}

    def __str__(self) -> str:
        """One line of bounded length; characters that could break the line are escaped."""
        value = "" if self.value is None else f"={printable(self.value)}"
        return f"{printable(self.property)}{value}: {shortened(self.wrong)}"


def without(given: Mapping[str, str], problems: Iterable[Problem]) -> dict[str, str]:
    """The properties, except those that the problems are about."""
    gone = set[str]().union(*(problem.among(given) for problem in problems))
    return {name: text for name, text in given.items() if name not in gone}


class SettingsError(QuotahostError, ValueError):
    """All problems of the broker's properties, each with its remedy."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in self.problems]
        super().__init__(lines[0] if len(lines) == 1 else "\n - ".join([f"{len(lines)} problems:", *lines]))


def reason(details: ErrorDetails) -> str:
    """The text of pydantic, without its own beginning (``Input should``), or of a validator's ValueError."""
    error = details.get("ctx", {}).get("error")
    words = details["msg"].replace("Input should", "must").replace("String should", "must")
    return str(error) if isinstance(error, ValueError | AssertionError) else words


def declare(name: str, *, default: Any = None, words: str = "", live: bool = True, repr: bool = True) -> Any:
    """A pydantic field for the property ``name``. The field's type has the parser, its docstring has the meaning.

    The ``default`` is a text as an operator would write it, or a function that makes this text from the fields before;
    then ``words`` describe it to operators. ``repr``: whether the ``repr()`` of the settings shows the value.
    """
    kind = "default_factory" if callable(default) else "default"
    extra: dict[str, Any] = {"property": name, "words": words, "live": live}
    # A default is a text as an operator writes it, so it goes through the parser, too.
    return Field(**{kind: default}, validate_default=True, repr=repr, json_schema_extra=extra)


def declared(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[Property]:
    """All properties of a settings model and of the models nested in it, in their order."""
    for attribute, field in model.model_fields.items():
        here = (*path, attribute)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from declared(field.annotation, here)
            continue
        extra: dict[str, Any] = field.json_schema_extra  # type: ignore[assignment]  # declare() gives a dict
        # Some types, such as plain str and dict, have no unit.
        unit = next((m for m in field.metadata if isinstance(m, Unit)), _TEXT)
        if get_origin(field.annotation) is Literal:
            unit = Unit(", ".join(get_args(field.annotation)), str)
        # For None, the table shows the type's word, such as unlimited or none, because an operator would write that.
        written = unit.show(None) if field.default is None else field.default
        default = extra["words"] if field.default_factory else written
        doc = " ".join((field.description or "").split())  # one line, however the source wraps the text
        yield Property(extra["property"], here, default, unit, extra["live"], doc)
