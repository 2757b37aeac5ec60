"""This factor source lowers the factor as the load of the broker's machine rises.

Set these properties; the first one names the plugin by its entry point (pyproject.toml)::

    client.quota.callback.factor.source=busy-machine
    client.quota.callback.plugin.busy-machine.calm=2
    client.quota.callback.plugin.busy-machine.overloaded=8
"""

import os
from collections.abc import Callable

from pydantic import BaseModel, Field
from quotahost.api import Context
from quotahost.model import Factor


class BusyMachineSection(BaseModel):
    """The properties under ``plugin.busy-machine.``. If one is wrong, the broker logs the error and doesn't start."""

    calm: float = Field(2, gt=0, description="the load average up to which the factor is 1")
    overloaded: float = Field(8, gt=0, description="the load average at which the factor is 0.1")


def load_average() -> float:
    """The average number of runnable processes in the last minute."""
    return os.getloadavg()[0]


class BusyMachine:
    """Returns a factor that falls linearly from 1 at the load ``calm`` to 0.1 at the load ``overloaded``."""

    Section = BusyMachineSection  # no reconfigure(): the host rebuilds the plugin when a property changes

    def __init__(self, context: Context[BusyMachineSection], load: Callable[[], float] = load_average) -> None:
        """Keep the context; a test may pass another ``load``."""
        self.context, self.load = context, load

    def read(self) -> Factor:
        """The present factor and its cause; the host calls this method every ``factor.interval``."""
        section, load = self.context.section, self.load()
        if load <= section.calm:
            return Factor(1.0)
        way = (load - section.calm) / max(section.overloaded - section.calm, 1e-9)
        return Factor(max(0.1, 1 - 0.9 * way), f"load average {load:.1f}")
