"""What the supplier ``static`` gives every client, under the names that Strimzi's plugin has for it."""

from __future__ import annotations

from pydantic import Field

from quotahost.settings.declaration import Frozen, declare
from quotahost.settings.properties.storage import StorageSettings
from quotahost.settings.types import Sharing
from quotahost.units import BytesLimit, MutationsLimit, PercentLimit


class StaticSettings(Frozen):
    """The rates of the supplier ``static``, who shares one, and the limits of this broker's volumes."""

    produce: BytesLimit = declare("static.produce")
    """Produce rate that the supplier `static` gives."""
    fetch: BytesLimit = declare("static.fetch")
    """Fetch rate that it gives."""
    request: PercentLimit = declare("static.request")
    """Request rate that it gives, in percent of one thread's time."""
    controller_mutation: MutationsLimit = declare("static.controller-mutation")
    """Rate of partitions created and deleted that it gives."""
    scope: Sharing = declare("static.scope", default="broker")
    """Who shares one such rate: with `broker` it is one total for all clients of a broker, as with Strimzi's plugin;
    else each client (principal and client-id), user or client-id has one of its own."""
    storage: StorageSettings = Field(default_factory=StorageSettings)
