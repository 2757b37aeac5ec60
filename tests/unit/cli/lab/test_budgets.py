"""Tests a replay of budgets of storage: from means over ten minutes it finds how long writers were held back."""

import pytest

from quotahost.cli.lab.curves import BudgetUse
from quotahost.cli.lab.play import BudgetTimes, Declared, judge_budgets
from quotahost.model.budgets import Budget

PART = 600.0


def use(*used: int, budget: str = "orders.*") -> BudgetUse:
    return BudgetUse("c", budget, PART, [(PART * i, each) for i, each in enumerate(used)])


def declared(then: int, new: int, share: float = 0.9) -> Declared:
    first, second = (Budget("orders.*", ("orders.*",), size) for size in (then, new))
    return {"orders.*": ((first, 0.9), (second, share))}


def test_beyond_the_soft_share_writers_are_held_back_and_at_all_bytes_the_budget_is_used_up() -> None:
    used = use(800, 900, 901, 1000, 1020, 700)
    (found,), notes = judge_budgets([used], declared(1000, 1000), 7 * PART)
    assert (found.then, found.new) == (BudgetTimes(3 * PART, 2 * PART), BudgetTimes(3 * PART, 2 * PART))
    assert (found.peak, found.peak_at, found.unknown_s) == (1020, 4 * PART, PART)
    assert notes == []


@pytest.mark.parametrize(
    ("then", "new", "share", "held"),
    [
        pytest.param(2000, 1000, 0.9, BudgetTimes(2 * PART, PART), id="a smaller budget, judged by the recorded bytes"),
        pytest.param(2000, 2000, 0.4, BudgetTimes(3 * PART, 0), id="an earlier soft limit"),
        pytest.param(1200, 2000, 0.9, BudgetTimes(0, 0), id="a larger budget, after one that slowed nobody"),
        pytest.param(1000, 2000, 0.9, None, id="unknown, because the original budget held writers back"),
        pytest.param(1000, 1000, 1.0, None, id="unknown, with a later soft limit, too"),
    ],
)
def test_what_other_sizes_would_have_done_is_told(then: int, new: int, share: float, held: BudgetTimes | None) -> None:
    (found,), _ = judge_budgets([use(500, 850, 950, 1010)], declared(then, new, share), 4 * PART)
    assert found.new == held
    assert found.sizes == (then, new)


def test_those_held_longest_come_first_and_where_that_is_not_known_it_counts_as_long_as_then() -> None:
    sizes = {"once": (1000, 1000), "never": (900, 1000), "thrice": (2000, 1000), "twice then": (1000, 2000)}
    used = {"once": [950], "never": [800], "thrice": [950] * 3, "twice then": [950] * 2}
    own = {name: declared(*of)["orders.*"] for name, of in sizes.items()}
    found, _ = judge_budgets([use(*of, budget=name) for name, of in used.items()], own, 3 * PART)
    assert [budget.budget for budget in found] == ["thrice", "twice then", "once", "never"]


def test_a_budget_that_the_history_cannot_tell_of_is_named() -> None:
    of = declared(1000, 1000)["orders.*"][0]
    others = {
        "replicas": Budget("replicas", ("a",), 9, replicas=True), "more": Budget("more", ("a", "b"), 9),
        "new": Budget("new", ("a",), 9),
    }  # fmt: skip
    own = {name: ((Budget(name, ("a",), 9), 0.9), (budget, 0.9)) for name, budget in others.items()}
    own |= {"orders.*": (of, of)}
    found, notes = judge_budgets([use(5), use(5, budget="replicas"), use(5, budget="more")], own, PART)
    assert [budget.budget for budget in found] == ["orders.*"]
    assert notes == [
        "budgets not judged, because the history has no bytes of them: new",
        "budgets not judged, because other topics or replicas counted then: more, replicas",
    ]
