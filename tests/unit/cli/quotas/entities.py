"""Strategies of hypothesis for all that may be declared: names that are hard to write, and rates of every size."""

import math

from hypothesis import strategies as st

from quotahost.cli.quotas.plan import Entity
from quotahost.model import DEFAULT

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12) | st.sampled_from([
    "<default>", "a/b:c,d\\", "no", "007", "null", '"', "100%", " ", "CN=a,O=b", "\n", "\x00", "\x85", "\ufeff",
    "- a", "#",
])  # fmt: skip
MAYBE = NAMES | st.just(DEFAULT)
ADDRESSES = st.ip_addresses().map(str) | st.just(DEFAULT)
WHOLE = st.integers(1, 2**53).map(float)
RATES = st.floats(1e-9, 1e15)


def quotas_of(entity: Entity) -> st.SearchStrategy[tuple[Entity, dict[str, float]]]:
    rates = {
        key: st.integers(1, 2**31 - 1).map(float) if "connection" in key else WHOLE if "byte" in key else RATES
        for key in entity.units()
    }
    if entity.in_cluster:
        rates = dict.fromkeys(rates, RATES | st.just(math.inf))
    chosen = st.fixed_dictionaries({}, optional=rates).filter(bool)
    return chosen.map(lambda each: (entity, each))


OF_CLUSTER = (
    st.builds(Entity, NAMES, st.none() | NAMES | st.just(""), in_cluster=st.just(True))
    | st.builds(Entity, st.none(), NAMES, in_cluster=st.just(True))
    | st.just(Entity(DEFAULT, in_cluster=True))
)
ENTITIES = (
    st.builds(Entity, MAYBE, st.none() | MAYBE)
    | st.builds(Entity, st.none(), MAYBE)
    | st.builds(Entity, st.none(), st.none(), ADDRESSES)
)
QUOTAS = st.lists((ENTITIES | OF_CLUSTER).flatmap(quotas_of), max_size=8).map(dict)
