"""A policy: two steps instead of a ramp.

Its properties, of which the second names it by its entry point (pyproject.toml); the first is the source of the volumes
that it judges::

    client.quota.callback.factor.source=local
    client.quota.callback.policy=two-steps
    client.quota.callback.plugin.two-steps.slow=80
    client.quota.callback.plugin.two-steps.stop=95
"""

from pydantic import BaseModel, Field
from quotahost.api import Context
from quotahost.model import Volume


class TwoStepsSection(BaseModel):
    """The properties under ``plugin.two-steps.``. A broker doesn't start with a wrong one, and logs which and why."""

    slow: float = Field(80, ge=0, le=100, description="percent consumed from which on half of the quotas is left")
    stop: float = Field(95, ge=0, le=100, description="percent consumed from which on nothing is left")


class TwoSteps:
    """Answers 1, 0.5, or 0."""

    Section = TwoStepsSection  # without a method reconfigure() the host builds a new plugin when these change

    def __init__(self, context: Context[TwoStepsSection]) -> None:
        """Keep the properties."""
        self.section = context.section

    def quota_factor(self, volume: Volume) -> float:
        """The part of the quotas that is left; never more for a fuller volume."""
        percent = 100 * volume.consumed / volume.capacity if volume.capacity else 100.0
        if percent >= self.section.stop:
            return 0.0
        return 0.5 if percent >= self.section.slow else 1.0
