"""From a flat mapping of property names and texts to a settings model, with every problem told at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from quotahost.settings.declaration import PREFIX, Problem, Property, SettingsError, declared
from quotahost.settings.strimzi.names import ADMIN, OWN
from quotahost.text import nearest

_M = TypeVar("_M", bound=BaseModel)
_FAMILIES = ("kafka", "plugin")


def read(
    model: type[_M],
    properties: Mapping[str, str],
    problems: Iterable[Problem] = (),
) -> _M:
    """Read the properties under the common prefix into the model; all others are ignored.

    Args:
        model: settings whose fields were made by ``declare``.
        properties: full names and texts.
        problems: what the caller has found wrong already, to be raised together with what is found here.

    Raises:
        SettingsError: unknown names, wrong values, or plugin.NAME.* of a plugin that isn't configured.
    """
    given = {n.removeprefix(PREFIX): text for n, text in properties.items() if n.startswith(PREFIX)}
    known = {declaration.name: declaration for declaration in declared(model)}
    data: dict[str, Any] = {}
    problems = [*problems]
    problems += [problem for name, text in given.items() for problem in _place(data, known, name, text)]
    try:
        settings = model.model_validate(data)
    except ValidationError as error:
        problems += [_wrong(details, known.values(), given) for details in error.errors() if _is_own(details)]
    else:
        problems += _unused(data.get("plugin", {}), configured_names(settings))
    if problems:
        # Not in the except clause: its error would carry the values, secrets too, into tracebacks.
        raise SettingsError(problems)
    return settings


def configured_names(settings: Any) -> dict[str, list[str]]:
    """The names of the plugins that these settings name, by the property that names them.

    ``factor.source`` names the second factor source too, which is built only while it is needed.
    """
    named: dict[str, Iterable[str]] = {
        "supplier": settings.supplier,
        "factor.source": dict.fromkeys((settings.factor_source, settings.factor_source_second)),
        "policy": (settings.policy,),
        "tasks": settings.tasks,
    }
    return {key: [name for name in names if name] for key, names in named.items()}


def _place(data: dict[str, Any], known: Mapping[str, Property], name: str, text: str) -> Iterable[Problem]:
    """Put one property where the model expects it."""
    if f"{name}.".startswith(ADMIN):
        if rest := name[len(ADMIN) :]:
            data.setdefault("kafka_admin", {})[rest] = text
        else:
            form = f"{PREFIX}{ADMIN}NAME, with the name that Java's Admin client has for a setting"
            yield Problem(PREFIX + name, f"is incomplete; write {form}")
    elif name.partition(".")[0] in _FAMILIES:
        yield from _place_in_family(data, name, text)
    elif name in known:
        *outer, attribute = known[name].path
        for step in outer:
            data = data.setdefault(step, {})
        data[attribute] = text
    else:
        yield Problem(PREFIX + name, _unknown(name, known))


def _place_in_family(data: dict[str, Any], full: str, text: str) -> Iterable[Problem]:
    family, _, rest = full.partition(".")
    values: dict[str, Any] = data.setdefault(family, {})
    plugin, _, name = rest.partition(".")
    if family == "kafka" and rest:
        values[rest] = text
    elif family == "plugin" and plugin and name:
        values.setdefault(plugin, {})[name] = text
    else:
        form = (
            "kafka.NAME, with librdkafka's name of a setting" if family == "kafka" else "plugin.NAME.SETTING"
        )
        yield Problem(PREFIX + full, f"is incomplete; write {PREFIX}{form}")


def _unknown(name: str, known: Iterable[str]) -> str:
    """Values of unknown properties are never told: this may be a misspelt secret."""
    theirs = [*OWN, f"{ADMIN}bootstrap.servers"] if name.startswith("static.") else []
    like = nearest(name, [*(k for k in known if not k.endswith("*")), *theirs])
    family, _, rest = name.partition(".")
    if like is None and rest and (near := nearest(family, _FAMILIES)):
        like = f"{near}.{rest}"
    hint = (
        f"did you mean {PREFIX}{like}?" if like else "remove it; `quotahost properties` lists all there are"
    )
    return f"unknown property; {hint}"


def _is_own(details: ErrorDetails) -> bool:
    """Not the mere consequence of another property's error for a default that depends on it."""
    return details["type"] != "default_factory_not_called"


def _wrong(details: ErrorDetails, known: Iterable[Property], given: Mapping[str, str]) -> Problem:
    location = details["loc"]
    whole = ".".join(map(str, location))
    among = next(
        (name for name in given if name.startswith(whole + ".")), whole
    )  # several don't fit together
    name = next((p.name for p in known if p.path == location[: len(p.path)]), among)
    return Problem(PREFIX + name, reason(details), given.get(name))


def reason(details: ErrorDetails) -> str:
    """What pydantic, or a validator's ValueError, says, without pydantic's own prefix."""
    error = details.get("ctx", {}).get("error")
    return str(error) if isinstance(error, ValueError | AssertionError) else details["msg"]


def _unused(sections: Iterable[str], plugins: Mapping[str, list[str]]) -> list[Problem]:
    names = list(chain.from_iterable(plugins.values()))
    return [
        Problem(
            f"{PREFIX}plugin.{section}.*",
            f"no configured plugin is named {section!r}; {_hint(section, names)}",
        )
        for section in sections
        if section not in names
    ]


def _hint(section: str, names: list[str]) -> str:
    like = nearest(section, names)
    if like:
        return f"did you mean {PREFIX}plugin.{like}.*?"
    return (
        f"remove it, or name the plugin in supplier, factor.source, policy or tasks (now: {', '.join(names)})"
    )
