"""A supplier of one's own: in off-peak hours every client may produce at double the rate.

Broker properties, all under ``client.quota.callback.``::

    supplier=off-peak,client-quotas,static
    plugin.off-peak.produce=1M
    plugin.off-peak.from=22:00
    plugin.off-peak.to=06:00

Hours go by the broker's own clock and time zone. FETCH, REQUEST and CONTROLLER_MUTATION are left to the
suppliers named after it.
"""

from datetime import datetime, time
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field

from quotahost.api import Context
from quotahost.model import Client, Quota, QuotaType
from quotahost.units import BytesPerSecond

Hour = Annotated[time, BeforeValidator(lambda text: datetime.strptime(text, "%H:%M").time())]


class OffPeak:
    """Doubles ``produce`` from ``from`` to ``to``."""

    class Section(BaseModel):
        """The properties under ``plugin.off-peak.``."""

        produce: BytesPerSecond = Field(description="produce rate of each client, in bytes/s, such as 1M")
        from_: Hour = Field(time(22), description="when off-peak hours begin, as HH:MM")
        to: Hour = Field(time(6), description="when they end")

    def __init__(self, context: Context[Section]) -> None:
        """Read nothing but the settings; ``clock`` is for tests."""
        self.context, self.clock = context, datetime.now
        self.now = self.rate()

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        """The rate of this hour, for PRODUCE."""
        return self.now if quota_type is QuotaType.PRODUCE else None

    def tick(self) -> None:
        """Once a second: announce the other rate when its hour has come."""
        if self.now != (now := self.rate()):
            self.now = now
            self.context.answers_changed()

    def rate(self) -> Quota:
        """What holds at this time of day."""
        own, hour = self.context.section, self.clock().time()
        past_midnight = own.to < own.from_
        off_peak = hour >= own.from_ or hour < own.to if past_midnight else own.from_ <= hour < own.to
        return Quota(own.produce * (2 if off_peak else 1))
