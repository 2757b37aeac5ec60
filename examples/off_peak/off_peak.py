"""A supplier: in quiet hours every client may produce at double the rate.

Its properties, of which the first names it by its entry point (pyproject.toml)::

    client.quota.callback.supplier=off-peak,client-quotas,static
    client.quota.callback.plugin.off-peak.produce=1M
    client.quota.callback.plugin.off-peak.from=22:00
    client.quota.callback.plugin.off-peak.to=06:00

Hours are those of the broker's clock and time zone. This supplier answers for PRODUCE only; the suppliers named
after it answer for the other quota types. Its test checks it without a broker.
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
    """The properties under ``plugin.off-peak.``. A broker doesn't start with a wrong one, and logs which and why."""

    produce: BytesPerSecond = Field(description="produce rate of each client, in bytes/s, such as 1M")
    from_: Hour = Field(time(22), description="when quiet hours begin, as HH:MM")
    to: Hour = Field(time(6), description="when they end, as HH:MM")


class OffPeak:
    """Gives every client ``produce``, and twice that from ``from`` to ``to``."""

    Section = OffPeakSection  # without a method reconfigure() the host builds a new plugin when these change

    def __init__(self, context: Context[OffPeakSection], clock: Callable[[], datetime] = datetime.now) -> None:
        """Work out the present quota; ``clock`` is for tests."""
        self.context, self.clock = context, clock
        self.current = self.quota_now()

    def quota(self, client: Client, quota_type: QuotaType) -> Quota | None:
        """The same for every client; None leaves the other quota types to the next supplier."""
        return self.current if quota_type is QuotaType.PRODUCE else None

    def tick(self) -> None:
        """Announce another quota once its hour has come; the host calls this about once a second."""
        quota = self.quota_now()
        if quota != self.current:
            self.current = quota
            self.context.answers_changed()  # now the host asks again for all clients

    def quota_now(self) -> Quota:
        """The quota at this time of day."""
        section, hour = self.context.section, self.clock().time()
        if section.from_ <= section.to:
            quiet = section.from_ <= hour < section.to
        else:  # past midnight
            quiet = hour >= section.from_ or hour < section.to
        return Quota(section.produce * (2 if quiet else 1))
