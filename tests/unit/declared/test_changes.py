"""Plans, and files that read back as the quotas that they were written of."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from quotahost.declared.changes import Change, compare
from quotahost.declared.document import read_declared
from quotahost.declared.entities import DEFAULT, Entity, keys_of
from quotahost.declared.properties import OURS, properties
from quotahost.declared.written import in_yaml
from quotahost.plugins.cluster_quota.rates import ClusterQuotaSettings, ClusterRates
from quotahost.settings.plugin_section import read_section

PRESENT = {
    Entity("alice"): {"producer_byte_rate": 1e6, "request_percentage": 50.0},
    Entity("bob"): {"producer_byte_rate": 2e6},
}


def test_what_is_declared_is_added_changed_and_removed() -> None:
    declared = {Entity("alice"): {"producer_byte_rate": 3e6, "consumer_byte_rate": 1e6}}
    plan = compare(declared, PRESENT, prune=False)
    assert [(change.what, change.key) for change in plan.changes] == [
        ("add", "consumer_byte_rate"),
        ("change", "producer_byte_rate"),
        ("remove", "request_percentage"),
    ]
    assert [change.entity for change in plan.not_managed] == [Entity("bob")]


def test_what_nobody_declared_goes_only_when_asked() -> None:
    plan = compare({Entity("alice"): PRESENT[Entity("alice")]}, PRESENT, prune=True)
    assert plan.changes == (Change(Entity("bob"), "producer_byte_rate", 2e6, None),)
    assert plan.not_managed == ()


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12) | st.sampled_from(
    [
        "<default>",
        "a/b:c,d\\",
        "no",
        "007",
        "null",
        '"',
        "100%",
        " ",
        "CN=a,O=b",
        "\n",
        "\x00",
        "\x85",
        "\ufeff",
        "- a",
        "#",
    ]
)
MAYBE = NAMES | st.just(DEFAULT)
ADDRESSES = st.ip_addresses().map(str) | st.just(DEFAULT)
WHOLE = st.integers(1, 2**53).map(float)
RATES = st.floats(1e-9, 1e15)


def quotas_of(entity: Entity) -> st.SearchStrategy[tuple[Entity, dict[str, float]]]:
    rates = {
        key: st.integers(1, 2**31 - 1).map(float) if "connection" in key else WHOLE if "byte" in key else RATES
        for key in keys_of(entity)
    }
    if entity.in_cluster:
        rates = dict.fromkeys(rates, RATES | st.just(math.inf))
    chosen = st.fixed_dictionaries({}, optional=rates).filter(bool)
    return chosen.map(lambda each: (entity, each))


OF_CLUSTER = (
    st.builds(Entity, NAMES, st.none() | NAMES, in_cluster=st.just(True))
    | st.builds(Entity, st.none(), NAMES, in_cluster=st.just(True))
    | st.just(Entity(DEFAULT, in_cluster=True))
)
ENTITIES = (
    st.builds(Entity, MAYBE, st.none() | MAYBE)
    | st.builds(Entity, st.none(), MAYBE)
    | st.builds(Entity, st.none(), st.none(), ADDRESSES)
)
QUOTAS = st.lists((ENTITIES | OF_CLUSTER).flatmap(quotas_of), max_size=8).map(dict)


@given(QUOTAS)
def test_an_exported_file_declares_what_there_was(quotas: dict[Entity, dict[str, float]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "quotas.yaml")
        file.write_text(in_yaml(quotas), encoding="utf-8")
        assert read_declared([file]).quotas == quotas


@given(st.lists(OF_CLUSTER.flatmap(quotas_of), max_size=8).map(dict))
def test_the_suppliers_properties_say_what_was_declared(quotas: dict[Entity, dict[str, float]]) -> None:
    texts = {name.removeprefix(OURS): text for name, text in properties(quotas).items() if text is not None}
    section = read_section("cluster-quota", texts, ClusterQuotaSettings)
    assert isinstance(section, ClusterQuotaSettings)
    read: dict[Entity, dict[str, float]] = {}
    for kind, rates in ClusterRates(section).by_type().items():
        for (user, client_id), rate in rates.items():
            default = user is None and client_id is None
            entity = Entity(DEFAULT if default else user, client_id, in_cluster=True)
            read.setdefault(entity, {})[kind.name.lower()] = math.inf if rate is None else rate
    assert read == quotas
