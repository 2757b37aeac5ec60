"""``plugin.NAME.*`` checked by the pydantic model that the plugin declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from quotahost.settings.declaration import PREFIX, Problem, SettingsError
from quotahost.settings.reader import reason
from quotahost.settings.secrets import is_secret_property, property_names, secret_values
from quotahost.text import nearest, redact

_CUSTOM = ("value_error", "assertion_error")  # texts of the plugin's own, which may hold the value


def read_section(name: str, section: Mapping[str, str], model: type[BaseModel] | None) -> BaseModel | None:
    """The model of one plugin's own properties (by property_names), None if the plugin has no model.

    Raises:
        SettingsError: unknown or wrong properties, all told at once; secrets are not told.
    """
    if model is None:
        if section:
            raise SettingsError([_needless(name, key) for key in section])
        return None
    known = property_names(model)
    is_open = model.model_config.get("extra") == "allow"
    problems = [] if is_open else [_unknown(name, key, known) for key in section if key not in known]
    keys = {key: _field_key(model, known[key]) if key in known else key for key in section}
    try:
        own = model.model_validate({keys[k]: text for k, text in section.items() if is_open or k in known})
    except ValidationError as error:
        problems += [_wrong(name, section, model, details) for details in error.errors()]
    if problems:
        # Not in the except clause: its error would carry the values, secrets too, into tracebacks.
        raise SettingsError(problems)
    return own


def _field_key(model: type[BaseModel], field: str) -> str:
    """By what name the model takes the field."""
    alias = model.model_fields[field].validation_alias
    return alias if isinstance(alias, str) else field


def _needless(name: str, key: str) -> Problem:
    return Problem(
        f"{PREFIX}plugin.{name}.{key}", f"the plugin {name!r} has no settings of its own; remove it"
    )


def _unknown(name: str, key: str, known: Iterable[str]) -> Problem:
    like = nearest(key, known)
    names = ", ".join(known) or "none"
    hint = f"did you mean {PREFIX}plugin.{name}.{like}?" if like else f"remove it; the plugin knows: {names}"
    return Problem(f"{PREFIX}plugin.{name}.{key}", f"unknown property; {hint}")


def _wrong(name: str, section: Mapping[str, str], model: type[BaseModel], details: ErrorDetails) -> Problem:
    """One of pydantic's errors in the operator's words: the property, and what its author says of it."""
    location = details["loc"]
    fields = {_field_key(model, field): key for key, field in property_names(model).items()}
    key = fields.get(str(location[0]), str(location[0])) if location else "*"
    full = f"{PREFIX}plugin.{name}.{key}"
    if details["type"] == "missing":
        return Problem(full, f"is required; add a line {full}={_meaning(model, key)}")
    if is_secret_property(key, model):
        what = "its value is not accepted" if details["type"] in _CUSTOM else details["msg"]
        return Problem(full, f"{what} (a secret, so not shown){_meaning(model, key)}")
    text = redact(reason(details), secret_values(section, model))
    return Problem(full, text + _meaning(model, key), section.get(key))


def _meaning(model: type[BaseModel], key: str) -> str:
    field = property_names(model).get(key)
    description = model.model_fields[field].description if field else None
    return f" ({description})" if description else ""
