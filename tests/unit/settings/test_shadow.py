"""The property ``shadow``: which rules are not enforced."""

from quotahost.settings.types import EVERYTHING, Shadow
from tests.unit.settings.properties import read


def test_rules_are_taken_in_any_order_and_case_and_topics_may_have_dots() -> None:
    rules = "topic.Orders.eu-1, FACTOR,supplier.static"
    shadow = read(shadow=rules).in_shadow
    assert shadow == Shadow(factor=True, topics=frozenset({"Orders.eu-1"}), suppliers=frozenset({"static"}))
    assert shadow.names() == ["factor", "topic.Orders.eu-1", "supplier.static"]


def test_all_topics_are_another_rule_than_single_ones() -> None:
    assert read(shadow="topics").in_shadow == Shadow(all_topics=True)


def test_nothing_is_in_shadow_by_default_and_everything_by_all() -> None:
    assert read().in_shadow == Shadow()
    assert read(shadow="supplier.static, ALL").in_shadow is EVERYTHING
