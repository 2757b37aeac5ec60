"""What a replay says of budgets of storage: by means of ten minutes it finds for how long writers were held back."""

from quotahost.cli.lab.budgets import BudgetTimes, BudgetUse, Declared, judged
from quotahost.model.budgets import Budget

PART = 600.0


def use(*used: int, budget: str = "orders.*") -> BudgetUse:
    return BudgetUse("c", budget, PART, [(PART * i, each) for i, each in enumerate(used)])


def declared(then: int, new: int, share: float = 0.9) -> Declared:
    first, second = (Budget("orders.*", ("orders.*",), size) for size in (then, new))
    return {"orders.*": ((first, 0.9), (second, share))}


def test_beyond_the_soft_share_writers_are_held_back_and_at_all_bytes_the_budget_is_used_up() -> None:
    used = use(800, 900, 901, 1000, 1020, 700)
    (found,), notes = judged([used], declared(1000, 1000), 7 * PART)
    assert (found.then, found.new) == (BudgetTimes(3 * PART, 2 * PART), BudgetTimes(3 * PART, 2 * PART))
    assert (found.peak, found.peak_at, found.unknown_s) == (1020, 4 * PART, PART)
    assert notes == []


def test_what_other_sizes_would_have_done_is_told_where_it_is_known() -> None:
    for then, new, share, held in (
        (2000, 1000, 0.9, BudgetTimes(2 * PART, PART)),  # a smaller one, by what was recorded
        (2000, 2000, 0.4, BudgetTimes(3 * PART, 0)),  # an earlier begin
        (1200, 2000, 0.9, BudgetTimes(0, 0)),  # a larger one, after one that held nobody back
        (1000, 2000, 0.9, None),  # nobody knows what they would have written, had they been let
        (1000, 1000, 1.0, None),  # nor with a later begin
    ):
        (found,), _ = judged([use(500, 850, 950, 1010)], declared(then, new, share), 4 * PART)
        assert (found.new, found.sizes) == (held, (then, new))


def test_a_budget_that_the_history_cannot_tell_of_is_named() -> None:
    of = declared(1000, 1000)["orders.*"][0]
    others = {
        "replicas": Budget("replicas", ("a",), 9, replicas=True), "more": Budget("more", ("a", "b"), 9),
        "new": Budget("new", ("a",), 9),
    }  # fmt: skip
    own = {name: ((Budget(name, ("a",), 9), 0.9), (budget, 0.9)) for name, budget in others.items()}
    own |= {"orders.*": (of, of)}
    found, notes = judged([use(5), use(5, budget="replicas"), use(5, budget="more")], own, PART)
    assert [budget.budget for budget in found] == ["orders.*"]
    assert notes == [
        "budgets not judged, since the history has no bytes of them: new",
        "budgets not judged, since other topics or replicas counted then: more, replicas",
    ]
