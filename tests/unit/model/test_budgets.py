"""Which topics belong to which budget, and what is used of it."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from quotahost.model.budgets import Budget, Replica, Topics, as_volume, in_cluster, sums
from quotahost.model.volumes import byte_limits

LETTERS = st.text("ab.", min_size=1, max_size=4)
PATTERNS = st.one_of(LETTERS, st.text("ab.", max_size=3).map(lambda begin: begin + "*"))


@given(st.lists(st.lists(PATTERNS, min_size=1, max_size=3), max_size=6), LETTERS)
def test_a_topic_belongs_to_each_budget_that_names_its_begin(patterns: Sequence[Sequence[str]], topic: str) -> None:
    budgets = [Budget(str(number), tuple(of), 1) for number, of in enumerate(patterns)]

    def names(pattern: str) -> bool:
        return topic.startswith(pattern[:-1]) if pattern.endswith("*") else topic == pattern

    expected = {budget.name for budget in budgets if any(map(names, budget.topics))}
    found = [budget.name for budget in Topics(budgets).budgets(topic)]
    assert (set(found), len(found)) == (expected, len(expected))


def test_bytes_of_leaders_count_or_those_of_all_replicas() -> None:
    replicas = [Replica("orders.eu", 10, True), Replica("orders.eu", 5, False), Replica("orders.us", 3, False)]
    leaders, all_of_them = Budget("l", ("orders.*",), 100), Budget("r", ("orders.eu", "orders.*"), 100, replicas=True)
    parts = sums([leaders, all_of_them, Budget("n", ("logs",), 1)], replicas)
    assert {name: part.used for name, part in parts.items()} == {"l": 10, "r": 18, "n": 0}
    assert parts["l"].topics == parts["r"].topics == {"orders.eu", "orders.us"}
    assert not parts["n"].topics


def test_the_brokers_parts_add_up_but_leaders_bytes_of_a_broker_out_of_service() -> None:
    budgets = {"a": Budget("a", ("t",), 9), "r": Budget("r", ("t",), 9, replicas=True), "n": Budget("n", ("n",), 9)}
    parts = [([("a", 1), ("r", 2)], True), ([], True), ([("a", 4), ("r", 8), ("gone", 5)], False), ([("a", 16)], True)]
    assert in_cluster(budgets, parts) == [17, 10, 0]


def test_a_budget_is_judged_as_a_volume_between_a_share_of_its_bytes_and_all_of_them() -> None:
    volume = as_volume(Budget("b", ("t",), 1000), 950, frozenset({"t"}), 0.9)
    limits = byte_limits(volume, volume.soft, volume.hard)
    assert limits is not None
    assert (limits.soft, limits.hard, limits.ramp(volume.consumed)) == (900, 1000, 0.5)
    nothing = as_volume(Budget("b", ("t",), 0), 0, frozenset({"t"}), 0.9)
    none = byte_limits(nothing, nothing.soft, nothing.hard)
    assert none is not None
    assert none.ramp(0) == 0, "a budget of nothing is used up by nothing"
