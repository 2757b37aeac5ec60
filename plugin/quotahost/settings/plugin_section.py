"""``plugin.NAME.*`` checked by the pydantic model that the plugin declares as its ``Section``.

The host and the testing kit call it by way of ``broker.discovery``; the result is the plugin's ``context.section``.
Pydantic's errors become the operator's: the full property, what its author wrote about it, and no secrets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from quotahost.settings.declaration import PREFIX, Problem, SettingsError
from quotahost.settings.reader import reason
from quotahost.settings.secrets import is_secret_property, property_names, secret_values
from quotahost.text import nearest, redact

_CUSTOM = ("value_error", "assertion_error")  # texts of the plugin's own, which may contain the value


def read_section(name: str, section: Mapping[str, str], model: type[BaseModel] | None) -> BaseModel | None:
    """The model of one plugin's own properties (by property_names), None if the plugin has no model.

    Raises:
        SettingsError: unknown or wrong properties; it lists all of them, without secrets.
    """
    prefix = f"{PREFIX}plugin.{name}."
    if model is None:
        if section:
            needless = f"the plugin {name!r} has no settings of its own; remove it"
            raise SettingsError([Problem(prefix + key, needless, unknown=True) for key in section])
        return None
    known = property_names(model)
    # A model that allows extra fields takes whatever the operator writes.
    is_open = model.model_config.get("extra") == "allow"
    #: Names that earlier versions had, by name what to do instead; a section may declare them as a ClassVar.
    removed: Mapping[str, str] = getattr(model, "removed", {})
    problems = [] if is_open else [_unknown(prefix, key, known, removed) for key in section if key not in known]
    keys = {key: _field_key(model, known[key]) if key in known else key for key in section}
    try:
        # Unknown names stay out: the model would report them once more, and without the nearest name.
        own = model.model_validate({keys[k]: text for k, text in section.items() if is_open or k in known})
    except ValidationError as error:
        problems += [_wrong(prefix, section, model, details) for details in error.errors()]
    if problems:
        # Not in the except clause: its error would carry the values, secrets too, into tracebacks.
        raise SettingsError(problems)
    return own


def _field_key(model: type[BaseModel], field: str) -> str:
    """By what name the model takes the field."""
    # By default pydantic takes a field that has an alias by the alias only.
    alias = model.model_fields[field].validation_alias
    return alias if isinstance(alias, str) else field


def _unknown(prefix: str, key: str, known: Iterable[str], removed: Mapping[str, str]) -> Problem:
    if key in removed:
        return Problem(prefix + key, f"was removed: {removed[key]}", unknown=True)
    like = nearest(key, known)
    names = ", ".join(known) or "none"
    hint = f"did you mean {prefix}{like}?" if like else f"remove it; the plugin knows: {names}"
    return Problem(prefix + key, f"unknown property; {hint}", unknown=True)


def _wrong(prefix: str, section: Mapping[str, str], model: type[BaseModel], details: ErrorDetails) -> Problem:
    names = {_field_key(model, field): (key, field) for key, field in property_names(model).items()}
    first = str(details["loc"][0]) if details["loc"] else "*"  # * for an error of the whole model
    key, field = names.get(first, (first, ""))
    description = model.model_fields[field].description if field else None
    meaning = f" ({description})" if description else ""
    if details["type"] == "missing":
        return Problem(prefix + key, f"is required; add a line {prefix}{key}={meaning}")
    if is_secret_property(key, model):
        what = "its value is not accepted" if details["type"] in _CUSTOM else details["msg"]
        return Problem(prefix + key, f"{what} (a secret, so not shown){meaning}")
    # The text may be the plugin's own, and quote another property of the section.
    text = redact(reason(details), secret_values(section, model))
    return Problem(prefix + key, text + meaning, section.get(key))
