"""This task shows the load average of the broker's machine in JMX.

Set these properties; the first one names the plugin by its entry point (pyproject.toml)::

    client.quota.callback.tasks=show-load
    client.quota.callback.plugin.show-load.period=10s
"""

import os
from datetime import timedelta

from pydantic import BaseModel, Field
from quotahost.api import Context
from quotahost.units import Duration


class ShowLoadSection(BaseModel):
    """The property under ``plugin.show-load.``. If it is wrong, the broker logs the error and doesn't start."""

    period: Duration = Field(timedelta(seconds=10), description="time between two looks, such as 10s")


class ShowLoad:
    """Reads the load average after each period; the host runs a task on its own thread."""

    Section = ShowLoadSection  # no reconfigure(): the host rebuilds the plugin when a property changes

    def __init__(self, context: Context[ShowLoadSection]) -> None:
        """Keep the context and the period."""
        self.context, self.period = context, context.section.period

    def run(self) -> None:
        """Publish the load average once, as an attribute of the MBean ``quotahost:type=Machine``."""
        self.context.metrics.gauge("Machine", "", "LoadAverage", os.getloadavg()[0])
