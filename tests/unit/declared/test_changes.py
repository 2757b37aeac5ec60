"""Plans, and files that read back as the quotas that they were written of."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from quotahost.broker.plugins.cluster_quota.rates import ClusterQuotaSettings, ClusterRates
from quotahost.declared.changes import Change, compare
from quotahost.declared.document import read_declared
from quotahost.declared.entities import DEFAULT, Entity
from quotahost.declared.properties import OURS, properties
from quotahost.declared.written import in_yaml
from quotahost.settings.plugin_section import read_section
from tests.unit.declared.entities import OF_CLUSTER, QUOTAS, quotas_of

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
