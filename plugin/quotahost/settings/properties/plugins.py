"""Which plugins a broker runs, and which it runs by default because of the others."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from quotahost.settings.declaration import Frozen, declare
from quotahost.settings.properties.static import StaticSettings
from quotahost.settings.types import Combination, Name, Names, SomeNames, Text
from quotahost.units import Duration

#: Both need the snapshots of all brokers: `cluster-volumes` gets them summed up by the pipeline.
_SNAPSHOT_READERS: Final = ("snapshots", "cluster-volumes")

# The defaults that depend on properties above them. A field that was refused is absent from ``fields``.


def _source(fields: dict[str, Any]) -> str | None:
    """This broker's own volumes where a limit is set: the least that protects them."""
    static = fields.get("static")
    return "local" if static and static.storage.any_limit else None


def _policy(fields: dict[str, Any]) -> str | None:
    return "limits" if fields.get("factor_source") else None


def _tasks(fields: dict[str, Any]) -> str:
    """The tasks that publish what the other brokers, or the pipeline, need of this one."""
    volumes = ["publish-volumes"] * (fields.get("factor_source") in _SNAPSHOT_READERS)
    return ",".join(volumes + ["publish-usage"] * ("cluster-quota" in fields.get("supplier", ())))


class PluginSettings(Frozen):
    """The suppliers, the factor source, the policy and the tasks, by the names of their entry points."""

    callback_class: str = declare("class", default="org.quotahost.PythonQuotaCallback", live=False)
    """Kafka's own: the class that it loads."""
    python_executable: Text = declare("python.executable", default="python3", live=False)
    """Interpreter of the environment in which `quotahost` and your plugins are installed; give the full path."""
    python_process: Literal["broker", "child"] = declare("python.process", default="broker", live=False)
    """Where Python runs: in the broker's own process, or in a child of it, whose crash ends no broker, and which can be
    replaced without a restart."""
    python_generation: str = declare("python.generation", default="")
    """Any text. With `python.process=child` a new value starts a new Python from `python.executable` as it is then,
    which takes the place of the one that runs once it has built its plugins; if it can't, the change is refused. The
    administrator's request waits for that on one of the broker's request handlers, for 20 s at most."""
    supplier: SomeNames = declare("supplier", default="client-quotas,static")
    """Suppliers in the order in which they are asked; the first answer is the client's quota."""
    supplier_combine: Combination = declare("supplier.combine", default="first")
    """`first`: for each quota type, the first supplier that has an answer gives the quota; `most-constraining`: all
    suppliers are asked and the smallest rate is the quota, unlimited being the largest."""
    static: StaticSettings = Field(default_factory=StaticSettings)
    factor_source: Name = declare(
        "factor.source", default=_source, words="local if a static.storage limit is set, else none"
    )
    """Where the state of the disks, and so the factor, comes from. While no records reach `cluster-volumes`,
    `snapshots` answers in its place."""
    factor_interval: Duration = declare("factor.interval", default="250ms")
    """How often the factor source is read."""
    policy: Name = declare("policy", default=_policy, words="limits with a factor.source, else none")
    """Makes a factor of each volume that the factor source reports."""
    tasks: Names = declare(
        "tasks",
        default=_tasks,
        words="publish-volumes where factor.source reads snapshots, publish-usage with the supplier cluster-quota",
    )
    """Periodic tasks to run in the broker."""
