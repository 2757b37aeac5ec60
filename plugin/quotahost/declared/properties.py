"""The properties of the supplier ``cluster-quota`` with given quotas, as an operator would write them."""

from __future__ import annotations

import math
import re
from typing import Final

from quotahost.broker.plugins.cluster_quota.rates import NAME
from quotahost.declared.entities import DEFAULT, OF_CLUSTER, Entity, Quotas
from quotahost.settings.declaration import PREFIX
from quotahost.units.parse import UNLIMITED
from quotahost.units.show import shorthand

OURS: Final = f"{PREFIX}plugin.{NAME}."
_ESCAPED: Final = re.compile(r"[\\:,/\s]")


def properties(quotas: Quotas) -> dict[str, str | None]:
    """All of the supplier's properties with these quotas; None for a default that isn't set.

    An empty list is written, too: else a list in a broker's own server.properties would take its place.
    """
    made: dict[str, str | None] = {}
    for key in OF_CLUSTER:
        rates = {entity: each[key] for entity, each in quotas.items() if key in each}
        default = rates.pop(Entity(DEFAULT, in_cluster=True), None)
        made[f"{OURS}{key}.default"] = None if default is None else _rate(default)
        for kind in ("users", "client-ids", "clients"):
            entries = [f"{_name(each)}:{_rate(rate)}" for each, rate in rates.items() if _kind(each) == kind]
            made[f"{OURS}{key}.{kind}"] = ",".join(sorted(entries))
    return made


def _kind(entity: Entity) -> str:
    if entity.user is None:
        return "client-ids"
    return "users" if entity.client_id is None else "clients"


def _name(entity: Entity) -> str:
    """The names of an entry; see quotahost.settings.rate_lists for what has to be escaped."""
    return "/".join(_ESCAPED.sub(r"\\\g<0>", str(name)) for name in entity.parts().values())


def _rate(rate: float) -> str:
    if math.isinf(rate):
        return UNLIMITED
    return shorthand(rate) or repr(rate)
