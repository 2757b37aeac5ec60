"""Clients whatever the suppliers answer: who is exempt, what newcomers share, and how many clients have a place."""

from __future__ import annotations

from pydantic import Field

from quotahost.settings.declaration import Frozen, declare
from quotahost.settings.properties.topics import TopicSettings
from quotahost.settings.types import Principals
from quotahost.units import BytesLimit, Count, Duration, MutationsLimit, PercentLimit


class NewcomerSettings(Frozen):
    """What all clients share that are not resolved yet."""

    # One quota for all of them: with one each, a client would have as many as it invents names (docs/adr/0003).
    produce: BytesLimit = declare("newcomers.produce", default="100M")
    """Produce rate that all principals share that are not known yet, and each known one's client-ids that are not."""
    fetch: BytesLimit = declare("newcomers.fetch", default="100M")
    """Fetch rate that they share."""
    request: PercentLimit = declare("newcomers.request", default="200")
    """Request rate that they share."""
    controller_mutation: MutationsLimit = declare("newcomers.controller-mutation", default="100")
    """Mutation rate that they share."""


class ClientSettings(Frozen):
    """Exempt principals, newcomers, the topics that clients write to, and the tables in the broker."""

    listed_principals: Principals = declare("static.excluded.principal.name.list", default="")
    """Principals that are never throttled, whichever supplier answers: `User:a;User:CN=b,OU=c`, separated by `;`
    because a distinguished name contains commas."""
    # KafkaClusterSpec.FORBIDDEN_PREFIXES of Strimzi's operator has the name above.
    exempt_principals: Principals = declare("exempt.principals", default="")
    """More principals like these. Strimzi's operator drops the property above from `spec.kafka.config`, and keeps
    this one."""
    newcomers: NewcomerSettings = Field(default_factory=NewcomerSettings)
    topics: TopicSettings = Field(default_factory=TopicSettings)
    clients_max: Count = declare("clients.max", default="50000", live=False)
    """How many places the table has. A principal takes one, and so does each of its clients beyond the first whose
    quota depends on the client-id; the last tenth is for principals alone."""
    clients_idle: Duration = declare("clients.idle", default="1h", live=False)
    """How long a client must have been silent before its place may be given to another. Kafka keeps a client's
    sensors for an hour: with less, a throttled client could get rid of its quota."""

    @property
    def excluded_principals(self) -> tuple[str, ...]:
        """All principals that an operator exempts, by either property."""
        return *self.listed_principals, *self.exempt_principals
