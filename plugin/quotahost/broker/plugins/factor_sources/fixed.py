"""The factor source ``fixed``: a factor that is a property, for drills.

It reads no volumes and protects no disk. 0.5 shows what throttling does to the clients, 0 rehearses a PAUSE, and 1
ends the drill; the property can be changed live.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from quotahost.api import Context
from quotahost.model import Factor


class Fixed:
    """Reports the factor of ``plugin.fixed.factor``, however full the disks are."""

    class Section(BaseModel):
        """The properties under ``plugin.fixed.``."""

        model_config = ConfigDict(extra="forbid", frozen=True)

        factor: float = Field(
            default=1.0,
            ge=0.0,
            le=1.0,
            allow_inf_nan=False,
            description="The factor to report: 1 OPEN, between 0 and 1 THROTTLE, 0 PAUSE.",
        )

    def __init__(self, context: Context[Section]) -> None:
        """Take the factor of ``context.section``."""
        self.reconfigure(context.section)

    def reconfigure(self, section: Section) -> None:
        """Report the new factor from the next read on."""
        self._factor = Factor(section.factor, f"fixed by plugin.fixed.factor={section.factor:g}")

    def read(self) -> Factor:
        """The factor of the property, with the property as its cause."""
        return self._factor
