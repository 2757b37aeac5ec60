"""Plans, and files that read back as the quotas that they were written of."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given

from quotahost.cli.quotas.files import in_yaml, read_declared
from quotahost.cli.quotas.plan import Change, Entity, compare
from tests.unit.cli.quotas.entities import QUOTAS

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


def test_an_entity_shall_have_all_that_is_declared_of_it_and_not_only_what_differs() -> None:
    declared = {
        Entity("alice"): {"producer_byte_rate": 1e6, "consumer_byte_rate": 2e6},
        Entity("bob"): PRESENT[Entity("bob")],
    }
    assert compare(declared, PRESENT, prune=False).wanted == {Entity("alice"): declared[Entity("alice")]}


def test_what_nobody_declared_goes_only_when_asked() -> None:
    plan = compare({Entity("alice"): PRESENT[Entity("alice")]}, PRESENT, prune=True)
    assert plan.changes == (Change(Entity("bob"), "producer_byte_rate", 2e6, None),)
    assert (plan.wanted, plan.not_managed) == ({Entity("bob"): {}}, ())


@given(QUOTAS)
def test_an_exported_file_declares_what_there_was(quotas: dict[Entity, dict[str, float]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "quotas.yaml")
        file.write_text(in_yaml(quotas), encoding="utf-8")
        assert read_declared([file]).quotas == quotas
