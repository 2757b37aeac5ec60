"""This supplier doubles every client's produce rate in quiet hours.

Set these properties; the first one names the plugin by its entry point (pyproject.toml)::

    client.quota.callback.supplier=off-peak,client-quotas,static
    client.quota.callback.plugin.off-peak.produce=1M
    client.quota.callback.plugin.off-peak.from=22:00
    client.quota.callback.plugin.off-peak.to=06:00

The hours are in the broker's time zone. This supplier answers for PRODUCE only; the next suppliers in the property
answer for the other quota types.
"""

from collections.abc import Callable
from datetime import datetime, time
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field
from quotahost.api import Context
from quotahost.model import Client, Quota, QuotaType
from quotahost.units import BytesPerSecond

Hour = Annotated[time, BeforeValidator(lambda text: datetime.strptime(text, "%H:%M").time())]


class OffPeakSection(BaseModel):
    """The properties under ``plugin.off-peak.``. If one is wrong, the broker logs the error and doesn't start."""

    produce: BytesPerSecond = Field(description="produce rate of each client, in bytes/s, such as 1M")
    from_: Hour = Field(time(22), description="when quiet hours begin, as HH:MM")
    to: Hour = Field(time(6), description="when quiet hours end, as HH:MM")


class OffPeak:
    """Gives every client the rate ``produce``, and twice this rate between ``from`` and ``to``."""

    Section = OffPeakSection  # no reconfigure(): the host rebuilds the plugin when a property changes

    def __init__(self, context: Context[OffPeakSection], clock: Callable[[], datetime] = datetime.now) -> None:
        """Compute the present quota; a test may pass another ``clock``."""
        self.context, self.clock = context, clock
        self.current = self.quota_now()

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        """The present quota for PRODUCE; None for other quota types, so that the host asks the next supplier."""
        return self.current if quota_type is QuotaType.PRODUCE else None

    def tick(self) -> None:
        """Announce a changed quota; the host calls this method about once a second."""
        quota = self.quota_now()
        if quota != self.current:
            self.current = quota
            self.context.answers_changed()  # the host then asks again for all clients

    def quota_now(self) -> Quota:
        """The quota at this time of day."""
        section, hour = self.context.section, self.clock().time()
        if section.from_ <= section.to:
            quiet = section.from_ <= hour < section.to
        else:  # past midnight
            quiet = hour >= section.from_ or hour < section.to
        return Quota(section.produce * (2 if quiet else 1))
