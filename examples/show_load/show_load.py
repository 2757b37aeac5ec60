"""A task: shows the load average of the broker's machine in JMX.

Its properties, of which the first names it by its entry point (pyproject.toml)::

    client.quota.callback.tasks=show-load
    client.quota.callback.plugin.show-load.period=10s
"""

import os
from datetime import timedelta

from pydantic import BaseModel, Field
from quotahost.api import Context
from quotahost.units import Duration


class ShowLoadSection(BaseModel):
    """The property under ``plugin.show-load.``. A broker doesn't start with a wrong one, and logs which and why."""

    period: Duration = Field(timedelta(seconds=10), description="time between two looks, such as 10s")


class ShowLoad:
    """Looks again after each period, on a thread of its own."""

    Section = ShowLoadSection  # without a method reconfigure() the host builds a new plugin when these change

    def __init__(self, context: Context[ShowLoadSection]) -> None:
        """Take the period."""
        self.context, self.period = context, context.section.period

    def run(self) -> None:
        """Look once; the MBean is ``quotahost:type=Machine``."""
        self.context.metrics.gauge("Machine", "", "LoadAverage", os.getloadavg()[0])
