"""From a flat mapping of property names and texts to a settings model and back to rows, with every problem at once.

1. :func:`read` puts each text at the attribute that its declaration names. Pydantic parses and checks all of them, and
   pydantic's errors become the operator's: property, value, what would be right. All are raised together.
2. :func:`describe` shows every property as it was understood, for ``doctor``; :func:`table` lists the declarations, for
   the documents. No secret is shown.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from quotahost.settings.declaration import PREFIX, Problem, Property, SettingsError, declared, reason
from quotahost.settings.sections import is_secret_property
from quotahost.text import nearest

_M = TypeVar("_M", bound=BaseModel)
#: The plugins' section models by the plugins' names.
Models = Mapping[str, type[BaseModel] | None]
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
    "metrics.address": "metrics.port takes it, as ADDRESS:PORT, such as 0.0.0.0:9404; remove it",
    "mode": "shadow=all puts all rules in shadow; remove it",
    "pause.release": "its name is pause.resume.free-share; write that",
    "snapshots.expiry": "with fenced.brokers=unknown a fenced broker is unknown until it is back; remove it, and "
    "unregister a broker that is gone for good (kafka-cluster.sh unregister)",
    "start.timeout": "the start waits 30 s for the plugins; remove it, and on a very slow machine set the JVM option "
    "-Dquotahost.python.start.seconds",
    "usage.clients": "publish-usage publishes the 100 busiest clients of a broker; remove it",
    "usage.period": "publish-usage looks every 500 ms; remove it",
} | {
    f"{topic}.topic": f"topics.prefix names all topics of quotahost, here PREFIX{topic.replace('.', '_')}; remove it"
    for topic in ("snapshots", "cluster.volumes", "usage", "shares", "quotas", "watch", "looks")
}


def read(
    model: type[_M],
    properties: Mapping[str, str],
    problems: Iterable[Problem] = (),
    synonyms: Iterable[str] = (),
    contradictions: Callable[[_M], Iterable[Problem]] = lambda _: (),
) -> _M:
    """Read the properties under the common prefix into a model of ``declare``'s fields; all others are ignored.

    ``problems`` are what the caller has found wrong already, to be raised together with what is found here, and
    ``synonyms`` names that it has replaced, to be suggested for a misspelt one. ``contradictions`` finds what doesn't
    fit together in a model whose values are right each by itself. Raises SettingsError with all that is wrong.
    """
    given = {n.removeprefix(PREFIX): text for n, text in properties.items() if n.startswith(PREFIX)}
    known = {declaration.name: declaration for declaration in declared(model)}
    data: dict[str, Any] = {}
    # All problems are gathered before any is raised, so that an operator needs one start to see them all.
    all_problems = list(problems)
    for name, text in given.items():
        path = _path(name, known, synonyms)
        if isinstance(path, Problem):
            all_problems.append(path)
            continue
        place = data
        for step in path[:-1]:
            place = place.setdefault(step, {})
        place[path[-1]] = text
    try:
        settings = model.model_validate(data)
    except ValidationError as error:
        # Of a default that depends on a value that is wrong the error is a consequence.
        own = [details for details in error.errors() if details["type"] != "default_factory_not_called"]
        all_problems += [_wrong(details, known.values(), given) for details in own]
    else:
        # Only now: what doesn't fit together is not known while one of the properties is wrong.
        all_problems += contradictions(settings)
    if all_problems:
        # Not in the except clause: its error would carry the values, secrets too, into tracebacks.
        raise SettingsError(all_problems)
    return settings


def _path(name: str, known: Mapping[str, Property], synonyms: Iterable[str]) -> tuple[str, ...] | Problem:
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


def _wrong(details: ErrorDetails, known: Iterable[Property], given: Mapping[str, str]) -> Problem:
    location = details["loc"]
    whole = ".".join(map(str, location))
    # Where several properties don't fit together, pydantic names their model: the first of them stands for all.
    among = next((name for name in given if name.startswith(whole + ".")), whole)
    name = next((p.name for p in known if p.path == location[: len(p.path)]), among)
    return Problem(PREFIX + name, reason(details), given.get(name))


# ---- settings as understood ----

HIDDEN: Final = "***"
_SET: Final = "broker properties"


@dataclass(frozen=True, slots=True)
class Row:
    """One property as understood."""

    property: str  # its full name
    value: str  # in full, with its unit; ``***`` for a secret
    where: str  # it comes from, in words


def describe(settings: BaseModel, models: Models | None = None) -> list[Row]:
    """Every property as understood, in the order of the declarations; unset families have no rows.

    ``models`` are the configured plugins' section models by name, which say what is a secret. Without a model a
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
    for declaration in declarations:
        default = declaration.default
        if default and " " not in default:
            default = f"`{default}`"
        live = "yes" if declaration.live else "no"
        cells = (f"`{declaration.name}`", default, declaration.unit.name, live, declaration.doc)
        # An unescaped | would end the cell.
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
