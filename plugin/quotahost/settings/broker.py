"""The broker's properties as one typed, frozen object, ``Settings``: read, checked together, those gone named, shown.

Properties come in here: the host (at the start and at each live change), ``doctor`` and the testing kit call
:func:`read_properties` or :meth:`Settings.from_properties`, and hand on the object. The properties are declared in
``settings.properties``.

1. Strimzi's names are translated first (``settings.strimzi``).
2. Each text is put at the attribute that its declaration names. Pydantic parses and checks all of them, and pydantic's
   errors become the operator's: property, value, what would be right.
3. The values are checked against each other. All problems are raised together.
4. :func:`describe` shows every property as it was understood, for ``doctor``; :func:`properties_table` lists the
   declarations, for the documents. No secret is shown.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import reduce
from itertools import chain
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from quotahost.base.text import meant, nearest, redact
from quotahost.settings.declaration import PREFIX, Problem, Property, SettingsError, declared, reason
from quotahost.settings.properties import (
    SNAPSHOT_READERS,
    ClientSettings,
    ConnectionSettings,
    EnforcementSettings,
    PluginSettings,
    RecordSettings,
)  # fmt: skip
from quotahost.settings.sections import property_names, secret_values
from quotahost.settings.strimzi import PROPERTIES, SYNONYMS, Translation
from quotahost.settings.types import SUPPLIER
from quotahost.units.show import show_duration

_PERIODS: Final = 2  # within validity: one snapshot, or look, may be late or lost
#: The plugins' section models by the plugins' names.
Models = Mapping[str, type[BaseModel] | None]
# Families of properties whose names others define: the attribute, how many parts the rest of a name has, and its form.
_FAMILIES: Final = {
    "kafka.": ("kafka", 1, "NAME, with librdkafka's name of a setting"),
    "static.kafka.admin.": ("kafka_admin", 1, "NAME, with the name that Java's Admin client has for a setting"),
    "plugin.": ("plugin", 2, "NAME.SETTING"),
}
#: Why ``shadow`` is refused; by it `quotahost quotas` knows that a broker lacks a supplier.
NO_SUPPLIER: Final = "no supplier is named {!r}"
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


# Pydantic takes the fields of the last base first. Their order is that of
# docs/reference/properties.md, and a default that depends on another property must come after it.
class Settings(ConnectionSettings, EnforcementSettings, ClientSettings, RecordSettings, PluginSettings):
    """All properties of a broker as typed values; made by :meth:`from_properties`."""

    @property
    def spared_topics(self) -> tuple[str, ...]:
        """The topics that are never turned back: brokers would miss each other's snapshots, or the pipeline's."""
        return *self.topics.spared, *self.record_topics

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "Settings":
        """As :func:`read_properties`, for callers that need no notes."""
        return read_properties(properties)[0]


def read_properties(properties: Mapping[str, str]) -> tuple[Settings, Translation]:
    """Read a broker's properties; those outside ``client.quota.callback.`` are ignored.

    Beside the settings it returns what became of Strimzi's own names. Raises SettingsError with all that is wrong.
    """
    translation = Translation(properties)
    given = {n.removeprefix(PREFIX): text for n, text in translation.properties.items() if n.startswith(PREFIX)}
    known = {declaration.name: declaration for declaration in declared(Settings)}
    data: dict[str, Any] = {}
    # All problems are gathered before any is raised, so that an operator needs one start to see them all.
    problems = list(translation.problems)
    for name, text in given.items():
        path = _path(name, known)
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
        # Of a default that depends on a value that is wrong the error is a consequence.
        own = [details for details in error.errors() if details["type"] != "default_factory_not_called"]
        problems += [_wrong(details, known.values(), given) for details in own]
    else:
        # Only now: what doesn't fit together is not known while one of the properties is wrong.
        problems += _contradictions(settings)
    if problems:
        # Not in the except clause: its error would carry the values, secrets too, into tracebacks.
        raise SettingsError(problems)
    return settings, translation


def _path(name: str, known: Mapping[str, Property]) -> tuple[str, ...] | Problem:
    for prefix, (attribute, count, form) in _FAMILIES.items():
        # With the dot, so that the bare name of a family (kafka=...) is called incomplete, not unknown.
        if f"{name}.".startswith(prefix):
            # The last part keeps its dots: librdkafka's names (bootstrap.servers) and plugins' own may contain some.
            parts = name[len(prefix) :].split(".", count - 1)
            if len(parts) == count and all(parts):
                return (attribute, *parts)
            return Problem(PREFIX + name, f"is incomplete; write {PREFIX}{prefix}{form}", unknown=True)
    if name in known:
        return known[name].path
    # The value of an unknown property is not shown: this may be a misspelt secret.
    wrong = f"no longer exists: {REMOVED[name]}" if name in REMOVED else _unknown(name, known)
    return Problem(PREFIX + name, wrong, unknown=True)


def _unknown(name: str, known: Iterable[str]) -> str:
    like = nearest(name, [*(k for k in known if not k.endswith("*")), *SYNONYMS])
    remove = "remove it; `quotahost properties` lists all there are"
    return f"unknown property; {f'did you mean {PREFIX}{like}?' if like else remove}"


def _wrong(details: ErrorDetails, known: Iterable[Property], given: Mapping[str, str]) -> Problem:
    location = details["loc"]
    whole = ".".join(map(str, location))
    why = reason(details)
    # Where several properties don't fit together, pydantic names their model: the first of them that the reason names,
    # else the first, stands for all.
    among = [p.name for p in known if p.path[: len(location)] == location and p.name in given]
    first = next((name for name in among if name in why.split()), next(iter(among), whole))
    name = next((p.name for p in known if p.path == location[: len(p.path)]), first)
    return Problem(PREFIX + name, why, given.get(name))


def configured_names(settings: PluginSettings) -> dict[str, list[str]]:
    """The names of the plugins that these settings name, by the property that names them."""
    return {
        "supplier": [*settings.supplier],
        "factor.source": [*settings.factor_sources],
        "policy": [settings.policy] if settings.policy else [],
        "tasks": [*settings.tasks],
    }


def _contradictions(settings: Settings) -> Iterator[Problem]:
    """Properties that are right each by itself and wrong together, in different parts of the settings."""
    names = list(chain.from_iterable(configured_names(settings).values()))
    remove = f"remove it, or name the plugin in supplier, factor.source, policy or tasks (now: {', '.join(names)})"
    for section in (section for section in settings.plugin if section not in names):
        like = nearest(section, names)
        # It need not be misspelt: a live change may have left a plugin out of which server.properties has lines.
        hint = f"one is named {like!r}: correct the name if it is misspelt, else {remove}" if like else remove
        wrong = f"no configured plugin is named {section!r}; {hint}"
        yield Problem(f"{PREFIX}plugin.{section}.*", wrong, unknown=True)
    for name in sorted(settings.shadow.suppliers.difference(settings.supplier)):
        hint = meant(name, settings.supplier, f"remove it, or name the supplier in {PREFIX}supplier", SUPPLIER)
        yield Problem(f"{PREFIX}shadow", f"{NO_SUPPLIER.format(name)}; {hint}", f"{SUPPLIER}{name}")
    spared = {*settings.spared_topics}
    for topic in (topic for topic, _ in settings.topics.thresholds if topic in spared):
        why = "it is quotahost's own, or among topics.spared; remove one"
        wrong = f"topic {topic} has a threshold, but is never turned back: {why}"
        yield Problem(f"{PREFIX}topics.bytes.in.per.sec.threshold", wrong)
    if settings.budgets == "on" and settings.factor_source not in SNAPSHOT_READERS:
        needed = f"{PREFIX}factor.source={' or '.join(SNAPSHOT_READERS)}"
        wrong = f"on needs {needed}, by which brokers know what the others hold; set one of them, or off"
        yield Problem(f"{PREFIX}budgets", wrong)
    publishes = settings.factor_source in SNAPSHOT_READERS or "publish-volumes" in settings.tasks
    periods = {
        "snapshots.period": settings.snapshots_period * publishes,
        "volumes.period": settings.volumes_period * (publishes or settings.factor_source == "local"),
    }
    for name, period in periods.items():
        if _PERIODS * period > settings.validity:
            wrong = f"{show_duration(period)} is more than half of validity ({show_duration(settings.validity)})"
            consequence = "so that brokers or disks at rest would count as unknown; shorten the one, or raise the other"
            yield Problem(f"{PREFIX}{name}", f"{wrong}, {consequence}")


def as_started(given: Mapping[str, str], started: Mapping[str, str]) -> tuple[dict[str, str], list[Problem]]:
    """The properties, but those that aren't live as the broker has ``started``; and a problem for each that differs."""
    not_live = [PREFIX + p.name for p in declared(Settings) if not p.live]
    fixed = {name for name in {*given, *started} if any(fnmatchcase(name, each) for each in not_live)}
    kept = {name: text for name, text in given.items() if name not in fixed}
    kept |= {name: text for name, text in started.items() if name in fixed}
    wrong = "can't change while the broker runs; change it in server.properties and restart the broker"
    changed = sorted(name for name in fixed if given.get(name) != started.get(name))
    return kept, [Problem(name, wrong, unknown=True) for name in changed]


def asked_properties(settings: Settings, models: Models | None = None) -> list[str]:
    """Full names of all properties about whose change Kafka has to ask, Strimzi's own last.

    They are those that are live and, so that a change is refused, those that are not. Kafka compares whole names
    (Reconfigurable.reconfigurableConfigs): of a family they are those in force. ``models`` are the section models, by
    name, of the plugins that the settings name: their properties are live, too.
    """
    # Kafka itself refuses a change of the class.
    own = [PREFIX + p.name for p in declared(Settings) if not p.is_family and p.name != "class"]
    own += [PREFIX + "kafka." + name for name in settings.kafka]
    own += [PREFIX + "static.kafka.admin." + name for name in settings.kafka_admin]
    # A factor source and a task may have the same name, and share their properties then.
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
    where: str  # it comes from, in words


def describe(settings: Settings, models: Models | None = None) -> list[Row]:
    """Every property as understood, in the order of the declarations; unset families have no rows.

    ``models`` are the configured plugins' section models by name, which say what is a secret; what none of them
    declares may be a misspelt one. Without them a property is a secret if its name says so: ``password``, ``token``.
    """
    rows: list[Row] = []
    for declaration in declared(Settings):
        *outer, attribute = declaration.path
        holder: Any = reduce(getattr, outer, settings)
        value = getattr(holder, attribute)
        if declaration.is_family:
            rows += _family(declaration, value, models)
        else:
            # The one default that an operator must not guess at.
            default = f"default ({declaration.default})" if attribute == "fallback_action" else "default"
            where = _SET if attribute in holder.model_fields_set else default
            rows.append(Row(PREFIX + declaration.name, declaration.unit.show(value), where))
    return rows


def _family(declaration: Property, values: Mapping[str, Any], models: Models | None) -> Iterator[Row]:
    for name, value in values.items():
        if isinstance(value, dict):  # plugin.NAME.*
            model = (models or {}).get(name)
            for key, text in value.items():
                known = models is None or key in property_names(model)
                shown = redact(text, secret_values({key: text}, model)) if known else HIDDEN
                yield Row(f"{PREFIX}plugin.{name}.{key}", shown, _SET)
        else:
            # kafka.* and static.kafka.admin.*: every value of theirs is a secret.
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
