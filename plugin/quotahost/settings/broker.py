"""Reads the broker's properties into one typed, frozen object, ``Settings``; checks them together, and shows them.

The host (at the start and at each live change), ``doctor`` and the testing kit call :func:`read_properties` or
:meth:`Settings.from_properties`, and pass the object on. ``settings.properties`` declares the properties.

1. ``settings.strimzi`` translates Strimzi's names.
2. :func:`read_properties` puts each text at the attribute that its declaration names; a removed name is a problem.
   Pydantic parses and checks the texts. Each error of pydantic becomes a Problem with property, value and remedy.
3. :func:`_contradictions` checks the values against each other. SettingsError has all problems together.
4. :func:`describe` shows every property as it was understood, for ``doctor``; :func:`properties_table` lists the
   declarations, for the documents. Neither shows a secret.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import reduce
from itertools import chain
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from quotahost.base.text import meant, nearest, redact
from quotahost.settings.declaration import PREFIX, Problem, Property, SettingsError, declared, reason
from quotahost.settings.properties import SNAPSHOT_READERS, Properties
from quotahost.settings.sections import property_names, secret_values
from quotahost.settings.strimzi import PROPERTIES, SYNONYMS, Translation
from quotahost.settings.types import SUPPLIER
from quotahost.units.show import show_duration

_PERIODS: Final = 2  # periods within validity, because one snapshot or look may be late or lost
#: The plugins' section models, by the plugins' names.
Models = Mapping[str, type[BaseModel] | None]
# Families of properties with names that others define: attribute, number of parts after the prefix, and their form.
_FAMILIES: Final = {
    "kafka.": ("kafka", 1, "NAME, with librdkafka's name of a setting"),
    "static.kafka.admin.": ("kafka_admin", 1, "NAME, with the name that Java's Admin client has for a setting"),
    "plugin.": ("plugin", 2, "NAME.SETTING"),
}
#: The reason why ``shadow`` is refused; it tells `quotahost quotas` that a broker lacks a supplier.
NO_SUPPLIER: Final = "no supplier is named {!r}"
#: Properties that quotahost no longer has, and what to do instead.
REMOVED: Final = {
    "factor.source.second": "snapshots stands by for cluster-volumes in any case; remove it",
    "inbox.max": "65,536 new clients can wait for the host; remove it",
    "metrics.address": "metrics.port takes the address, too, as ADDRESS:PORT, such as 0.0.0.0:9404; remove it",
    "mode": "shadow=all puts all rules in shadow; remove it",
    "pause.release": "it was renamed to pause.resume.free-share; use that name",
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


class Settings(Properties):
    """All properties of a broker as typed values; made by :meth:`from_properties`."""

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "Settings":
        """The settings of :func:`read_properties`, for callers that need no notes on Strimzi's names."""
        return read_properties(properties)[0]


def read_properties(properties: Mapping[str, str]) -> tuple[Settings, Translation]:
    """Read a broker's properties; properties outside ``client.quota.callback.`` are ignored.

    Returns the settings, and the translation of Strimzi's own names. Raises SettingsError with all problems.
    """
    translation = Translation(properties)
    given = {n.removeprefix(PREFIX): text for n, text in translation.properties.items() if n.startswith(PREFIX)}
    by_name = {declaration.name: declaration for declaration in declared(Settings)}
    lists = (given.get(name, "") for name in ("supplier", "factor.source", "policy", "tasks"))
    plugins = {name.strip() for text in lists for name in text.split(",")}
    data: dict[str, Any] = {}
    # All problems are collected before any is raised, so that an operator sees all of them after one start.
    problems = list(translation.problems)
    for name, text in given.items():
        path = _path(name, by_name, plugins)
        if isinstance(path, Problem):
            problems.append(path)
            continue
        place = data
        for step in path[:-1]:
            place = place.setdefault(step, {})
        place[path[-1]] = text
    try:
        settings = Settings.model_validate(data)
    except ValidationError as error:
        # If a default depends on a wrong value, the default's error is only a consequence.
        own = [details for details in error.errors() if details["type"] != "default_factory_not_called"]
        problems += [_wrong(details, by_name.values(), given) for details in own]
    else:
        # Contradictions come last, because they aren't known while one of the properties is wrong.
        problems += _contradictions(settings)
    if problems:
        # Raised outside the except clause, whose error would carry the values, even secrets, into tracebacks.
        raise SettingsError(problems)
    return settings, translation


def _path(name: str, by_name: Mapping[str, Property], plugins: Collection[str]) -> tuple[str, ...] | Problem:
    for prefix, (attribute, count, form) in _FAMILIES.items():
        # The dot is added, so that the bare name of a family (kafka=...) is reported as incomplete, not as unknown.
        if f"{name}.".startswith(prefix):
            # The last part keeps its dots: librdkafka's names (bootstrap.servers) and plugins' names may contain dots.
            parts = name[len(prefix) :].split(".", count - 1)
            if len(parts) == count and all(parts):
                return (attribute, *parts)
            return Problem(PREFIX + name, f"is incomplete; write {PREFIX}{prefix}{form}", unknown=True)
    if name in by_name:
        return by_name[name].path
    known = [*(each for each in by_name if not each.endswith("*")), *SYNONYMS]
    hint = meant(name, known, "remove it; `quotahost properties` lists all properties", PREFIX)
    hint = f"did you mean {PREFIX}plugin.{name}?" if name.partition(".")[0] in plugins else hint
    # The value of an unknown property is not shown, because the property may be a misspelt secret.
    wrong = f"no longer exists: {REMOVED[name]}" if name in REMOVED else f"unknown property; {hint}"
    return Problem(PREFIX + name, wrong, unknown=True)


def _wrong(details: ErrorDetails, properties: Iterable[Property], given: Mapping[str, str]) -> Problem:
    location = details["loc"]
    whole = ".".join(map(str, location))
    why = reason(details)
    # If several properties don't fit together, pydantic names only their model. The problem then names the first of
    # these properties that the reason mentions, or else the first one.
    among = [p.name for p in properties if p.path[: len(location)] == location and p.name in given]
    first = next((name for name in among if name in why.split()), next(iter(among), whole))
    name = next((p.name for p in properties if p.path == location[: len(p.path)]), first)
    return Problem(PREFIX + name, why, given.get(name))


def configured_names(settings: Settings) -> dict[str, list[str]]:
    """The names of the configured plugins, by the property that names them."""
    return {
        "supplier": [*settings.supplier],
        "factor.source": [*settings.factor_sources],
        "policy": [settings.policy] if settings.policy else [],
        "tasks": [*settings.tasks],
    }


def _contradictions(settings: Settings) -> Iterator[Problem]:
    """The problems of properties that are right by themselves and wrong together, across parts of the settings."""
    names = list(chain.from_iterable(configured_names(settings).values()))
    remove = f"remove it, or name the plugin in supplier, factor.source, policy or tasks (now: {', '.join(names)})"
    for section in (section for section in settings.plugin if section not in names):
        like = nearest(section, names)
        # The name may be right: a live change may have removed a plugin whose lines are still in server.properties.
        hint = f"one is named {like!r}: correct the name if it is misspelt, else {remove}" if like else remove
        wrong = f"no configured plugin is named {section!r}; {hint}"
        yield Problem(f"{PREFIX}plugin.{section}.*", wrong, unknown=True)
    for name in sorted(settings.shadow.suppliers.difference(settings.supplier)):
        hint = meant(name, settings.supplier, f"remove it, or name the supplier in {PREFIX}supplier", SUPPLIER)
        yield Problem(f"{PREFIX}shadow", f"{NO_SUPPLIER.format(name)}; {hint}", f"{SUPPLIER}{name}")
    spared = {*settings.spared_topics}
    for topic in (topic for topic, _ in settings.topics.thresholds if topic in spared):
        why = "it is quotahost's own, or in topics.spared; remove its threshold, or remove it from that list"
        wrong = f"topic {topic} has a threshold, but is never turned back: {why}"
        yield Problem(f"{PREFIX}topics.bytes.in.per.sec.threshold", wrong)
    if settings.budgets == "on" and settings.factor_source not in SNAPSHOT_READERS:
        needed = f"{PREFIX}factor.source={' or '.join(SNAPSHOT_READERS)}"
        wrong = f"on needs {needed}, because brokers learn from it how much the others use; set one of them, or off"
        yield Problem(f"{PREFIX}budgets", wrong)
    publishes = settings.factor_source in SNAPSHOT_READERS or "publish-volumes" in settings.tasks
    periods = {
        "snapshots.period": settings.snapshots_period * publishes,
        "volumes.period": settings.volumes_period * (publishes or settings.factor_source == "local"),
    }
    for name, period in periods.items():
        if _PERIODS * period > settings.validity:
            wrong = f"{show_duration(period)} is more than half of validity ({show_duration(settings.validity)})"
            consequence = "so that brokers or disks at rest would count as unknown; shorten it, or raise validity"
            yield Problem(f"{PREFIX}{name}", f"{wrong}, {consequence}")


def as_started(given: Mapping[str, str], started: Mapping[str, str]) -> tuple[dict[str, str], list[Problem]]:
    """The properties, with ``started`` values for those that aren't live, and a problem for each that differs."""
    not_live = [PREFIX + p.name for p in declared(Settings) if not p.live]
    fixed = {name for name in {*given, *started} if any(fnmatchcase(name, each) for each in not_live)}
    kept = {name: text for name, text in given.items() if name not in fixed}
    kept |= {name: text for name, text in started.items() if name in fixed}
    wrong = "can't change while the broker runs; change it in server.properties and restart the broker"
    changed = sorted(name for name in fixed if given.get(name) != started.get(name))
    return kept, [Problem(name, wrong, unknown=True) for name in changed]


def asked_properties(settings: Settings, models: Models | None = None) -> list[str]:
    """The full names of all properties whose changes Kafka must pass to the callback, Strimzi's own last.

    Properties that aren't live are included, so that a change of them is refused. Kafka compares whole names
    (Reconfigurable.reconfigurableConfigs), so of a family, the names in force are included. ``models`` are the
    configured plugins' section models by name; the properties of the plugins are live, too.
    """
    # Kafka itself refuses a change of the class.
    own = [PREFIX + p.name for p in declared(Settings) if not p.is_family and p.name != "class"]
    own += [PREFIX + "kafka." + name for name in settings.kafka]
    own += [PREFIX + "static.kafka.admin." + name for name in settings.kafka_admin]
    # A factor source and a task may have the same name, and then share their properties.
    names = dict.fromkeys(chain.from_iterable(configured_names(settings).values()))
    models = models or {}
    plugins = [f"{PREFIX}plugin.{name}.{key}" for name in names for key in property_names(models.get(name))]
    return own + plugins + [PREFIX + theirs.name for theirs in PROPERTIES if theirs.is_own and theirs.ours]


# ---- settings as understood ----

HIDDEN: Final = "***"
_SET: Final = "broker properties"


@dataclass(frozen=True, slots=True)
class Row:
    """One property as understood."""

    property: str  # its full name
    value: str  # in full, with its unit; ``***`` for a secret
    where: str  # where the value comes from, in words


def describe(settings: Settings, models: Models | None = None) -> list[Row]:
    """Every property as understood, in the order of the declarations; unset families have no rows.

    ``models`` are the configured plugins' section models by name. They say what is a secret; a property that no model
    declares may be a misspelt secret. If ``models`` is None, a property's name decides: ``password``, ``token``.
    """
    rows: list[Row] = []
    for declaration in declared(Settings):
        *outer, attribute = declaration.path
        holder: Any = reduce(getattr, outer, settings)
        value = getattr(holder, attribute)
        if declaration.is_family:
            rows += _family(declaration, value, models)
        else:
            # An operator must not have to guess this default.
            default = f"default ({declaration.default})" if attribute == "fallback_action" else "default"
            where = _SET if attribute in holder.model_fields_set else default
            rows.append(Row(PREFIX + declaration.name, declaration.unit.show(value), where))
    return rows


def _family(declaration: Property, values: Mapping[str, Any], models: Models | None) -> Iterator[Row]:
    for name, value in values.items():
        if isinstance(value, dict):  # plugin.NAME.*
            model = (models or {}).get(name)
            for key, text in value.items():
                is_declared = models is None or key in property_names(model)
                shown = redact(text, secret_values({key: text}, model)) if is_declared else HIDDEN
                yield Row(f"{PREFIX}plugin.{name}.{key}", shown, _SET)
        else:
            # All values of kafka.* and static.kafka.admin.* are secrets.
            yield Row(f"{PREFIX}{declaration.name.removesuffix('*')}{name}", HIDDEN, _SET)


def properties_table() -> str:
    """All properties as a Markdown table, names without ``client.quota.callback.``."""
    lines = ["| property | default | unit | live | meaning |", "|---|---|---|---|---|"]
    for declaration in declared(Settings):
        default, live = declaration.default, "yes" if declaration.live else "no"
        default = f"`{default}`" if default and " " not in default else default
        cells = (f"`{declaration.name}`", default, declaration.unit.name, live, declaration.doc)
        # An unescaped | would end the cell.
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
