"""What a supplier in shadow would give goes through Java as a text, and comes back as it was."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotahost.broker.host.messages import GROUP, WouldBe, shadow_text, tag, would_be
from quotahost.model import QUOTA_TYPES, ScopeKind

CLIENT, USER, CLIENT_ID, ALL = (each.value for each in ScopeKind if each is not ScopeKind.GROUP)
NAMES = st.lists(st.text(min_size=1), min_size=1, max_size=3)


@given(st.data(), NAMES, NAMES)
def test_a_text_says_what_would_be(data: st.DataObject, groups: list[str], suppliers: list[str]) -> None:
    codes = st.sampled_from([CLIENT, USER, CLIENT_ID, ALL, *(GROUP + at for at in range(len(groups)))])
    rates = st.just(math.nan) | st.floats(1e-300, 1e300)
    answers = st.none() | st.tuples(codes, rates, st.integers(0, len(suppliers) - 1))
    would = data.draw(st.tuples(answers, answers, answers, answers))
    text = shadow_text(would, groups, suppliers)
    assert text.isascii()
    assert (text == "") == (would == (None,) * 4)
    found = {each: would_be(text, each) for each in QUOTA_TYPES}
    assert {each: quota for each, quota in found.items() if quota is not None} == {
        quota_type: WouldBe(
            min(each[0], GROUP), None if math.isnan(each[1]) else each[1],
            groups[each[0] - GROUP] if each[0] >= GROUP else "", suppliers[each[2]],
        )
        for quota_type, each in zip(QUOTA_TYPES, would, strict=True) if each is not None
    }  # fmt: skip


@pytest.mark.parametrize(
    ("code", "tags", "depends"),
    [
        (CLIENT, ("a%2Fb", "c/d"), True),
        (USER, ("a%2Fb", ""), False),
        (CLIENT_ID, ("", "c/d"), True),
        (ALL, ("<broker>", ""), False),
        (GROUP, ("<group g%20h>", ""), False),
    ],
)
def test_a_scope_has_the_tags_that_java_would_give_it(code: int, tags: tuple[str, str], depends: bool) -> None:
    would = WouldBe(code, 1.0, "g h", "s")
    assert (would.tags("a/b", "c/d"), would.is_of_client_id) == (tags, depends)


def test_names_are_sanitized_as_kafka_does() -> None:
    # What SanitizedTest holds equal to Kafka's own Sanitizer.
    assert tag("CN=a b*~+ü-_.") == "CN%3Da%20b%2A%7E%2B%C3%BC-_."
    assert tag("\ud800") == "%3F"
