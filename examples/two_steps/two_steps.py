"""This policy lowers the factor in two steps instead of a ramp.

Set these properties; the first one names the factor source that reports the volumes, the second one names the plugin
by its entry point (pyproject.toml)::

    client.quota.callback.factor.source=local
    client.quota.callback.policy=two-steps
    client.quota.callback.plugin.two-steps.slow=80
    client.quota.callback.plugin.two-steps.stop=95
"""

from pydantic import BaseModel, Field
from quotahost.api import Context
from quotahost.model import Volume


class TwoStepsSection(BaseModel):
    """The properties under ``plugin.two-steps.``. If one is wrong, the broker logs the error and doesn't start."""

    slow: float = Field(80, ge=0, le=100, description="percent consumed at which the factor is 0.5")
    stop: float = Field(95, ge=0, le=100, description="percent consumed at which the factor is 0")


class TwoSteps:
    """Returns the factor 1, 0.5 or 0."""

    Section = TwoStepsSection  # no reconfigure(): the host rebuilds the plugin when a property changes

    def __init__(self, context: Context[TwoStepsSection]) -> None:
        """Keep the plugin's properties."""
        self.section = context.section

    def quota_factor(self, volume: Volume) -> float:
        """The factor for a volume; it is never larger for a fuller volume."""
        percent = 100 * volume.consumed / volume.capacity if volume.capacity else 100.0
        if percent >= self.section.stop:
            return 0.0
        return 0.5 if percent >= self.section.slow else 1.0
