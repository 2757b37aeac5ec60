"""A factor source: the busier the broker's machine is, the less of their quotas clients get.

Its properties, of which the first names it by its entry point (pyproject.toml)::

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
    """The properties under ``plugin.busy-machine.``. A broker doesn't start with a wrong one, and logs why."""

    calm: float = Field(2, gt=0, description="the load average below which nobody is slowed")
    overloaded: float = Field(8, gt=0, description="the load average from which on a tenth of the quotas is left")


def load_average() -> float:
    """How many processes wanted to run, on the average of the last minute."""
    return os.getloadavg()[0]


class BusyMachine:
    """Answers a factor between 1 and 0.1, in a straight line between the two loads."""

    Section = BusyMachineSection  # without a method reconfigure() the host builds a new plugin when these change

    def __init__(self, context: Context[BusyMachineSection], load: Callable[[], float] = load_average) -> None:
        """``load`` is for tests."""
        self.context, self.load = context, load

    def read(self) -> Factor:
        """The factor now, and why; called every ``factor.interval``."""
        section, load = self.context.section, self.load()
        if load <= section.calm:
            return Factor(1.0)
        way = (load - section.calm) / max(section.overloaded - section.calm, 1e-9)
        return Factor(max(0.1, 1 - 0.9 * way), f"load average {load:.1f}")
