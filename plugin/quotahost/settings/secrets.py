"""The one declaration from which a broker property is parsed, documented, shown and listed as live."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, get_args

from pydantic import BaseModel, SecretBytes, SecretStr

# TODO(merge) Plugins' own settings: names as properties, and which of them are secrets.

_SECRET: Final = re.compile("passw|passphrase|secret|token|key|jaas|credential", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Whether a property of this name must be taken for a secret when nothing better is known."""
    return _SECRET.search(name) is not None


def property_names(model: type[BaseModel] | None) -> dict[str, str]:
    """From a property's name (kebab-case) to the model's field (snake_case); ``from`` is ``from_`` there.

    A field whose alias holds a dot has that name: so a plugin can have names with dots (``quota.producer.default``).
    """
    fields = model.model_fields if model else {}
    return {_property_name(field, info.validation_alias): field for field, info in fields.items()}


def _property_name(field: str, alias: object) -> str:
    return alias if isinstance(alias, str) and "." in alias else field.rstrip("_").replace("_", "-")


def secret_fields(model: type[BaseModel] | None) -> set[str]:
    """The properties (kebab-case) of a plugin whose fields are secrets by their type."""
    fields = model.model_fields if model else {}
    return {name for name, field in property_names(model).items() if _holds_secret(fields[field].annotation)}


def _holds_secret(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, SecretStr | SecretBytes):
        return True
    return any(_holds_secret(part) for part in get_args(annotation))


def is_secret_property(name: str, model: type[BaseModel] | None) -> bool:
    """Whether the value of a plugin's property must never be told: by its field's type, or by its name."""
    return is_secret(name) or name in secret_fields(model)


def secret_values(section: Mapping[str, str], model: type[BaseModel] | None) -> list[str]:
    """The values in a plugin's section that must never be told."""
    return [text for key, text in section.items() if is_secret_property(key, model)]
