"""Which of a plugin's own properties are secrets, and how its properties' names relate to its model's fields.

A secret is never logged, printed or quoted in an error. A property is one if its field's type says so (``SecretStr``,
``SecretBytes``), or if its name looks like one, whatever the type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, get_args

from pydantic import BaseModel, SecretBytes, SecretStr

_SECRET: Final = re.compile("passw|passphrase|secret|token|key|jaas|credential", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Whether a property of this name must be taken for a secret when nothing better is known."""
    return _SECRET.search(name) is not None


def property_names(model: type[BaseModel] | None) -> dict[str, str]:
    """From a property's name (kebab-case) to the model's field (snake_case); ``from`` is ``from_`` there.

    A field whose alias contains a dot has that name, so that a plugin can have names such as ``produce.default``.
    """
    fields = model.model_fields if model else {}
    return {_property_name(field, info.validation_alias): field for field, info in fields.items()}


def _property_name(field: str, alias: object) -> str:
    return alias if isinstance(alias, str) and "." in alias else field.rstrip("_").replace("_", "-")


def is_secret_property(name: str, model: type[BaseModel] | None) -> bool:
    """Whether the value of a plugin's property must never be shown."""
    field = property_names(model).get(name)
    # The name is enough even where there is a model: its author may have declared a password as str.
    return is_secret(name) or (model is not None and field is not None and _has_secret(model, field))


def _has_secret(model: type[BaseModel], field: str) -> bool:
    def within(annotation: Any) -> bool:
        if isinstance(annotation, type) and issubclass(annotation, SecretStr | SecretBytes):
            return True
        # A secret is also hidden in `SecretStr | None` or `list[SecretStr]`.
        return any(within(part) for part in get_args(annotation))

    return within(model.model_fields[field].annotation)


def secret_values(section: Mapping[str, str], model: type[BaseModel] | None) -> list[str]:
    """The values in a plugin's section that must never be shown."""
    return [text for key, text in section.items() if is_secret_property(key, model)]
