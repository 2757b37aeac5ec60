"""The broker's properties under ``client.quota.callback.`` as one typed, frozen object, ``Settings``.

Properties come in here: the host (at the start and at each live change), ``doctor`` and the testing kit call
:func:`read_properties` or :meth:`Settings.from_properties`, and hand on the object. Strimzi's names are translated
first (``settings.strimzi``), then all texts are parsed (``settings.reader``), then checked against each other. The
properties are declared in ``settings.properties``.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final, Self

from pydantic import model_validator

from quotahost.model import Limit
from quotahost.settings.declaration import PREFIX, Problem, declared
from quotahost.settings.properties import (
    SNAPSHOT_READERS,
    ClientSettings,
    ConnectionSettings,
    EnforcementSettings,
    PluginSettings,
    RecordSettings,
)  # fmt: skip
from quotahost.settings.reader import Models, read, table
from quotahost.settings.sections import property_names
from quotahost.settings.strimzi import SYNONYMS, Translation, live_names, translate
from quotahost.settings.types import SUPPLIER
from quotahost.text import nearest
from quotahost.units.show import show_duration

_PERIODS: Final = 2  # within validity: one snapshot may be late or lost


# Pydantic takes the fields of the last base first. Their order is that of
# docs/reference/properties.md, and a default that depends on another property must come after it.
class Settings(ConnectionSettings, EnforcementSettings, ClientSettings, RecordSettings, PluginSettings):
    """All properties of a broker as typed values; made by :meth:`from_properties`."""

    @model_validator(mode="after")
    def _thresholds_take_effect(self) -> Self:
        without = next((topic for topic, _ in self.topics.thresholds if topic in self.record_topics), None)
        if without is not None:
            raise ValueError(
                f"topics.bytes.in.per.sec.threshold: topic {without} has a threshold, but is never turned back, "
                "as it is quotahost's own; remove the threshold"
            )
        return self

    @property
    def spared_topics(self) -> tuple[str, ...]:
        """The topics that are never turned back: brokers would miss each other's snapshots, or the pipeline's."""
        return *self.topics.spared, *self.record_topics

    @property
    def storage_soft(self) -> Limit | None:
        return self.static.storage.soft_limit

    @property
    def storage_hard(self) -> Limit | None:
        return self.static.storage.hard_limit

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "Settings":
        """As :func:`read_properties`, for callers that need no notes."""
        return read_properties(properties)[0]


def read_properties(properties: Mapping[str, str]) -> tuple[Settings, Translation]:
    """Read a broker's properties; those outside ``client.quota.callback.`` are ignored.

    Beside the settings it returns what became of Strimzi's own names, for the log and ``doctor``. Raises SettingsError
    with all that are unknown or wrong.
    """
    translation = translate(properties)
    return read(Settings, translation.properties, translation.problems, SYNONYMS, _contradictions), translation


def configured_names(settings: PluginSettings) -> dict[str, list[str]]:
    """The names of the plugins that these settings name, by the property that names them."""
    named: dict[str, Iterable[str | None]] = {
        "supplier": settings.supplier,
        "factor.source": settings.factor_sources,
        "policy": (settings.policy,),
        "tasks": settings.tasks,
    }
    return {key: [name for name in names if name] for key, names in named.items()}


def _contradictions(settings: Settings) -> Iterator[Problem]:
    """Properties that are right each by itself and wrong together, in different parts of the settings."""
    names = list(chain.from_iterable(configured_names(settings).values()))
    for section in (section for section in settings.plugin if section not in names):
        like, now = nearest(section, names), ", ".join(names)
        add = f"name the plugin in supplier, factor.source, policy or tasks (now: {now})"
        hint = f"did you mean {PREFIX}plugin.{like}.*?" if like else f"remove it, or {add}"
        wrong = f"no configured plugin is named {section!r}; {hint}"
        yield Problem(f"{PREFIX}plugin.{section}.*", wrong, unknown=True)
    for name in sorted(settings.shadow.suppliers.difference(settings.supplier)):
        like = nearest(name, settings.supplier)
        hint = f"did you mean {SUPPLIER}{like}?" if like else f"remove it, or name the supplier in {PREFIX}supplier"
        yield Problem(f"{PREFIX}shadow", f"no supplier is named {name!r}; {hint}", f"{SUPPLIER}{name}")
    if settings.budgets == "on" and settings.factor_source != "snapshots":
        wrong = (
            f"on needs {PREFIX}factor.source=snapshots, by which brokers know what the others hold; set that, or off"
        )
        yield Problem(f"{PREFIX}budgets", wrong)
    period, validity = settings.snapshots_period, settings.validity
    concerned = settings.factor_source in SNAPSHOT_READERS or "publish-volumes" in settings.tasks
    if concerned and _PERIODS * period > validity:
        yield Problem(
            f"{PREFIX}snapshots.period",
            f"{show_duration(period)} is more than half of validity ({show_duration(validity)}), so that a cluster at "
            f"rest would take its own brokers for silent; set at most {show_duration(validity / _PERIODS)}, or "
            f"{PREFIX}validity to at least {show_duration(_PERIODS * period)}",
        )


def live_properties(settings: Settings, models: Models | None = None) -> list[str]:
    """Full names of all properties whose change takes effect without a restart, Strimzi's own last.

    ``settings`` lists the configured plugins, whose own properties are live too; ``models`` are the configured plugins'
    section models by name.
    """
    # Kafka compares whole names (Reconfigurable.reconfigurableConfigs), so a family's star would match nothing.
    own = [PREFIX + p.name for p in declared(Settings) if p.live and not p.is_family]
    # A factor source and a task may have the same name, and share their properties then.
    names = dict.fromkeys(chain.from_iterable(configured_names(settings).values()))
    models = models or {}
    plugins = [f"{PREFIX}plugin.{name}.{key}" for name in names for key in property_names(models.get(name))]
    return own + plugins + live_names()


def properties_table() -> str:
    """All properties as a Markdown table, names without ``client.quota.callback.``."""
    return table(declared(Settings))
