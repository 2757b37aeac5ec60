"""From a flat mapping of property names and texts to a settings model, with every problem reported at once.

Three steps: each text goes to the attribute that its declaration names, pydantic parses and checks all of them, and
pydantic's errors become the operator's (:class:`Problem`: property, value, what would be right).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from quotahost.settings.declaration import PREFIX, Problem, Property, SettingsError, declared
from quotahost.settings.properties.plugins import PluginSettings
from quotahost.text import nearest

_M = TypeVar("_M", bound=PluginSettings)
# Families of properties whose names others define: the attribute, how many parts the rest of a name has, and its form.
_FAMILIES: Final = {
    "kafka.": ("kafka", 1, "NAME, with librdkafka's name of a setting"),
    "static.kafka.admin.": ("kafka_admin", 1, "NAME, with the name that Java's Admin client has for a setting"),
    "plugin.": ("plugin", 2, "NAME.SETTING"),
}
#: Properties that quotahost had, and what to do instead.
REMOVED: Final = {
    "factor.source.second": "snapshots stands by for cluster-volumes in any case; remove it",
    "inbox.max": "65,536 new clients can wait for the host; remove it",
    "pause.release": "its name is pause.resume.free-share; write that",
    "snapshots.expiry": "with fenced.brokers=unknown a fenced broker is unknown until it is back; remove it, and "
    "unregister a broker that is gone for good (kafka-cluster.sh unregister)",
    "usage.clients": "publish-usage publishes the 100 busiest clients of a broker; remove it",
    "usage.period": "publish-usage looks every 500 ms; remove it",
}


def read(
    model: type[_M],
    properties: Mapping[str, str],
    problems: Iterable[Problem] = (),
    synonyms: Iterable[str] = (),
    contradictions: Callable[[_M], Iterable[Problem]] = lambda _: (),
) -> _M:
    """Read the properties under the common prefix into the model; all others are ignored.

    Args:
        model: settings whose fields were made by ``declare``.
        properties: full names and texts.
        problems: what the caller has found wrong already, to be raised together with what is found here.
        synonyms: names that the caller has replaced, to be suggested for a misspelt one.
        contradictions: finds what doesn't fit together in a model whose values are right each by itself.

    Raises:
        SettingsError: unknown names, wrong values, or plugin.NAME.* of a plugin that isn't configured.
    """
    given = {n.removeprefix(PREFIX): text for n, text in properties.items() if n.startswith(PREFIX)}
    known = {declaration.name: declaration for declaration in declared(model)}
    data: dict[str, Any] = {}
    # All problems are gathered before any is raised, so that an operator needs one start to see them all.
    found = list(problems)
    for name, text in given.items():
        path = _path(name, known, synonyms)
        if isinstance(path, Problem):
            found.append(path)
        else:
            _put(data, path, text)
    try:
        settings = model.model_validate(data)
    except ValidationError as error:
        found += [_wrong(details, known.values(), given) for details in error.errors() if _is_own(details)]
    else:
        # Only now: which plugins are configured is not known while one of the properties is wrong.
        found += _unused(data.get("plugin", {}), configured_names(settings))
        found += contradictions(settings)
    if found:
        # Not in the except clause: its error would carry the values, secrets too, into tracebacks.
        raise SettingsError(found)
    return settings


def configured_names(settings: PluginSettings) -> dict[str, list[str]]:
    """The names of the plugins that these settings name, by the property that names them."""
    named: dict[str, Iterable[str | None]] = {
        "supplier": settings.supplier,
        "factor.source": (settings.factor_source,),
        "policy": (settings.policy,),
        "tasks": settings.tasks,
    }
    return {key: [name for name in names if name] for key, names in named.items()}


def _path(name: str, known: Mapping[str, Property], synonyms: Iterable[str]) -> tuple[str, ...] | Problem:
    """The attributes that lead to a property's place in the model."""
    for prefix, (attribute, count, form) in _FAMILIES.items():
        # With the dot, so that the bare name of a family (kafka=...) is called incomplete, not unknown.
        if f"{name}.".startswith(prefix):
            # The last part keeps its dots: librdkafka's names (bootstrap.servers) and plugins' own may contain some.
            parts = name[len(prefix) :].split(".", count - 1)
            if len(parts) == count and all(parts):
                return (attribute, *parts)
            return Problem(PREFIX + name, f"is incomplete; write {PREFIX}{prefix}{form}", unknown=True)
    # The value of an unknown property is not shown: this may be a misspelt secret.
    if name in known:
        return known[name].path
    if name in REMOVED:
        return Problem(PREFIX + name, f"no longer exists: {REMOVED[name]}", unknown=True)
    return Problem(PREFIX + name, _unknown(name, known, synonyms), unknown=True)


def _put(data: dict[str, Any], path: tuple[str, ...], text: str) -> None:
    *outer, attribute = path
    for step in outer:
        data = data.setdefault(step, {})
    data[attribute] = text


def _unknown(name: str, known: Iterable[str], synonyms: Iterable[str]) -> str:
    # A name of another family is more likely meant than one of Strimzi's that is a little like it.
    also = synonyms if name.startswith("static.") else ()
    like = nearest(name, [*(k for k in known if not k.endswith("*")), *also])
    # The name of a family may be misspelt where the rest is known to librdkafka or a plugin alone.
    family, _, rest = name.partition(".")
    if like is None and rest and (near := nearest(family, ("kafka", "plugin"))):
        like = f"{near}.{rest}"
    remove = "remove it; `quotahost properties` lists all there are"
    return f"unknown property; {f'did you mean {PREFIX}{like}?' if like else remove}"


def _is_own(details: ErrorDetails) -> bool:
    """Whether it is an error of its own, not the consequence of another one for a default that depends on it."""
    return details["type"] != "default_factory_not_called"


def _wrong(details: ErrorDetails, known: Iterable[Property], given: Mapping[str, str]) -> Problem:
    location = details["loc"]
    whole = ".".join(map(str, location))
    # Where several properties don't fit together, pydantic names their model: the first of them stands for all.
    among = next((name for name in given if name.startswith(whole + ".")), whole)
    name = next((p.name for p in known if p.path == location[: len(p.path)]), among)
    return Problem(PREFIX + name, reason(details), given.get(name))


def reason(details: ErrorDetails) -> str:
    """What pydantic, or a validator's ValueError, says, without pydantic's own prefix."""
    error = details.get("ctx", {}).get("error")
    return str(error) if isinstance(error, ValueError | AssertionError) else details["msg"]


def _unused(sections: Iterable[str], plugins: Mapping[str, list[str]]) -> Iterator[Problem]:
    """Sections of plugins that are not configured."""
    names = list(chain.from_iterable(plugins.values()))
    for section in sections:
        if section not in names:
            like, now = nearest(section, names), ", ".join(names)
            add = f"name the plugin in supplier, factor.source, policy or tasks (now: {now})"
            hint = f"did you mean {PREFIX}plugin.{like}.*?" if like else f"remove it, or {add}"
            wrong = f"no configured plugin is named {section!r}; {hint}"
            yield Problem(f"{PREFIX}plugin.{section}.*", wrong, unknown=True)
