"""The factor source ``fixed``: a factor that is a setting."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from quotahost.api import Context
from quotahost.model import Factor


class Fixed:
    """Reports the factor that ``plugin.fixed.factor`` says, whatever the disks look like.

    For drills: set 0.5 to see what throttling does to the clients, 0 to rehearse a PAUSE, 1 to end
    it; the property can be changed live. It knows nothing of volumes and protects no disk.
    """

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
        """The factor set, with the property as its reason."""
        return self._factor
