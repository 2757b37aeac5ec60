"""Reads a plugin's own properties, ``plugin.NAME.*``, into its ``Section``, and tells which of them are secrets.

A field ``off_peak`` of the model is the property ``off-peak``. A secret is never logged, printed or quoted. A property
is a secret if its field's type is one (``SecretStr``, ``SecretBytes``), or if its name looks like one, with any type.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, get_args

from pydantic import BaseModel, ConfigDict, SecretBytes, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from quotahost.base.text import meant, redact
from quotahost.settings.declaration import PREFIX, Problem, SettingsError, reason

_SECRET: Final = re.compile("pass|pwd|secret|token|key|jaas|credential", re.IGNORECASE)
#: The parts of a URL that may be a password: the user's part, and the text after ? or #. The scheme may be missing.
_IN_URL: Final = re.compile(r"^(?:\w++://|(?!\w++://))(.{3,})(?=@)|(?<=[?#])(.{3,})", re.DOTALL)  # no ()?+: see types
_IN_USERNAME: Final = re.compile("(?<=:).{3,}", re.DOTALL)  # the password in user:password
_CUSTOM: Final = ("value_error", "assertion_error")  # errors with a text of the plugin, which may contain the value


class Section(BaseModel):
    """The base of the sections of quotahost's own plugins: a property that is not declared is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False)


def property_names(model: type[BaseModel] | None) -> dict[str, tuple[str, FieldInfo]]:
    """For each property's name (kebab-case), the key by which pydantic takes the field (snake_case), and the field.

    The field of ``from`` is ``from_``. If a field's alias contains a dot, the alias is the property's name, so that a
    plugin can have names such as ``produce.default``.
    """
    names: dict[str, tuple[str, FieldInfo]] = {}
    for field, info in (model.model_fields if model else {}).items():
        # Unless configured otherwise, pydantic takes a field with an alias by its alias only.
        key = info.validation_alias if isinstance(info.validation_alias, str) else field
        names[key if "." in key else field.rstrip("_").replace("_", "-")] = key, info
    return names


def is_secret_property(name: str, model: type[BaseModel] | None) -> bool:
    # The name is enough even if there is a model: the model's author may have declared a password as str.
    if _SECRET.search(name):
        return True
    field = property_names(model).get(name)
    return field is not None and _has_secret(field[1].annotation)


def _has_secret(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, SecretStr | SecretBytes):
        return True
    # `SecretStr | None` and `list[SecretStr]` are secrets, too.
    return any(map(_has_secret, get_args(annotation)))


def revealed(secrets: Mapping[str, SecretStr]) -> dict[str, str]:
    return {name: value.get_secret_value() for name, value in secrets.items()}


def secret_values(section: Mapping[str, str], model: type[BaseModel] | None) -> list[str]:
    """The texts in these properties that no message may show."""
    found = [text for key, text in section.items() if is_secret_property(key, model)]
    for key, text in section.items():
        if "://" in text or "url" in key:
            found += map("".join, _IN_URL.findall(text))
        if "username" in key:
            found += _IN_USERNAME.findall(text)
    return found


def read_section(name: str, section: Mapping[str, str], model: type[BaseModel] | None) -> BaseModel | None:
    """Read one plugin's own properties (named as in property_names); returns None if the plugin has no model.

    Raises SettingsError for unknown or wrong properties; the error lists all of them, without secrets.
    """
    prefix = f"{PREFIX}plugin.{name}."
    if model is None:
        if section:
            needless = f"the plugin {name!r} has no properties; remove it, or give all plugins of this name one Section"
            raise SettingsError([Problem(prefix + key, needless, unknown=True) for key in section])
        return None
    declared = property_names(model)
    # A model that allows extra fields takes any property.
    is_open = model.model_config.get("extra") == "allow"
    #: Names of earlier versions, and for each what to do instead; a section may declare them as a ClassVar.
    removed: Mapping[str, str] = getattr(model, "removed", {})
    problems = [] if is_open else [_unknown(prefix, key, declared, removed) for key in section if key not in declared]
    # Unknown names are left out: the model would report them again, and without the nearest name.
    given = {declared[k][0] if k in declared else k: text for k, text in section.items() if is_open or k in declared}
    try:
        values = model.model_validate(given)
    except ValidationError as error:
        problems += [_wrong(prefix, section, model, details) for details in error.errors()]
    if problems:
        # Raised outside the except clause, whose error would carry the values, even secrets, into tracebacks.
        raise SettingsError(problems)
    return values


def _unknown(prefix: str, key: str, declared: Iterable[str], removed: Mapping[str, str]) -> Problem:
    if key in removed:
        return Problem(prefix + key, f"was removed: {removed[key]}", unknown=True)
    hint = meant(key, declared, f"remove it; the plugin knows: {', '.join(declared) or 'none'}", before=prefix)
    return Problem(prefix + key, f"unknown property; {hint}", unknown=True)


def _wrong(prefix: str, section: Mapping[str, str], model: type[BaseModel], details: ErrorDetails) -> Problem:
    names = {key: (name, field.description) for name, (key, field) in property_names(model).items()}
    first = str(details["loc"][0]) if details["loc"] else "*"  # * for an error of the whole model
    key, description = names.get(first, (first, None))
    meaning = f" ({description})" if description else ""
    if details["type"] == "missing":
        return Problem(prefix + key, f"is required; add a line {prefix}{key}={meaning}")
    if is_secret_property(key, model):
        what = "its value is not accepted" if details["type"] in _CUSTOM else details["msg"]
        return Problem(prefix + key, f"{what} (a secret, so not shown){meaning}")
    # The error's text may come from the plugin, and quote another property of the section.
    secrets = secret_values(section, model)
    value = redact(section[key], secrets) if key in section else None
    remedy = "; kafka-configs.sh takes brackets only by --add-config-file" if details["type"] == "json_invalid" else ""
    if details["type"].endswith("_type") and details["input"] == section.get(key):  # a list, a mapping, a model
        remedy = ", which no text is: its plugin must declare it by pydantic's Json"
    return Problem(prefix + key, redact(reason(details), secrets) + remedy + meaning, value)
