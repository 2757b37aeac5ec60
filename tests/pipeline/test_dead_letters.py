"""What is known to be free of refusals: never too much, as a dead letter that nobody looks for is lost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.system.waiting import eventually
from quotahost.pipeline.dead_letters import Sifted

AT = ("t", "0")


def batch(number: int, start: Any, end: int, refused: int | None = 0, run: str = "a") -> dict[str, Any]:
    told = {} if refused is None else {"refused": {"refused": refused}}
    source = {"startOffset": _offset(start), "endOffset": _offset(end)}
    return {
        "runId": run, "batchId": number, "durationMs": {"addBatch": 1}, "observedMetrics": told, "sources": [source],
    }  # fmt: skip


def _offset(at: int | None) -> str:
    return json.dumps(None if at is None else {"t": {"0": at}})


def sifted(*batches: Mapping[str, Any]) -> Sifted:
    known = Sifted("t", patience=0)
    for each in batches:
        known.told(each)
    return known


def clean(known: Sifted, since: int, until: int) -> bool:
    return known.clean({AT: since}, {AT: until})


def asked(known: Sifted, since: int, until: int) -> Future[bool]:
    """By another thread."""
    return ThreadPoolExecutor(1).submit(clean, known, since, until)


def test_what_was_read_without_a_refusal_is_clean_from_the_first_batch_on() -> None:
    known = sifted(batch(0, None, 10), batch(1, 10, 30))
    assert known.clean({}, {AT: 30})
    assert clean(known, 7, 25)
    assert not clean(known, 7, 31), "not read yet"


def test_before_the_first_batch_that_was_told_nothing_is_known() -> None:
    known = sifted(batch(8, 100, 110))
    assert not clean(known, 99, 105)
    assert not known.clean({}, {AT: 105})
    assert clean(known, 100, 105)


def test_a_refusal_spoils_its_batch_and_what_was_before() -> None:
    known = sifted(batch(0, 0, 10), batch(1, 10, 20, refused=1), batch(2, 20, 30))
    assert not clean(known, 0, 5), "that was so, but only one stretch is remembered"
    assert not clean(known, 12, 25)
    assert clean(known, 20, 30)


def test_a_batch_that_does_not_tell_counts_as_refused() -> None:
    assert not clean(sifted(batch(0, 0, 10, refused=None)), 0, 10)


def test_a_batch_that_was_missed_begins_anew() -> None:
    known = sifted(batch(0, 0, 10), batch(2, 20, 30))
    assert not clean(known, 5, 25)
    assert clean(known, 20, 30)


def test_a_batch_told_again_changes_nothing_and_one_of_the_same_number_after_a_restart_does() -> None:
    first = batch(0, 0, 10)
    known = sifted(first, first, batch(1, 10, 20))
    assert clean(known, 0, 20)
    known.told(batch(1, 10, 20, refused=1, run="b"))
    assert not clean(known, 0, 20)


def test_the_last_batches_told_again_in_their_order_change_nothing() -> None:
    last = batch(1, 10, 20, refused=1), batch(2, 20, 30), batch(3, 30, 40)
    known = sifted(batch(0, 0, 10), *last, *last)
    assert clean(known, 20, 40)
    assert not clean(known, 19, 40)


def idle(number: int, at: int) -> dict[str, Any]:
    return batch(number, at, at, refused=None) | {"durationMs": {"latestOffset": 1}}


def test_a_look_that_found_nothing_changes_nothing_but_hides_no_batch_with_its_number() -> None:
    known = sifted(batch(0, 0, 10), idle(1, 10), idle(1, 10))
    assert clean(known, 0, 10)
    known.told(batch(1, 10, 20, refused=1))
    assert not clean(known, 10, 20)


def test_a_query_that_starts_again_where_nothing_comes_tells_where_it_stands() -> None:
    known = sifted(idle(5, 100))
    assert clean(known, 100, 100)
    assert not clean(known, 99, 100), "what it read before the start"


def test_other_topics_of_the_query_and_of_the_asker_don_t_count() -> None:
    known = Sifted("t", patience=0)
    ticks = {
        "startOffset": '{"ticks": {"0": 500}, "t": {"0": 3}}',
        "endOffset": '{"ticks": {"0": 501}, "t": {"0": 9}}',
    }
    known.told(batch(0, 0, 0) | {"sources": [ticks]})
    assert known.clean({AT: 3, ("usage", "0"): 0}, {AT: 9, ("usage", "0"): 40})


def test_a_partition_that_is_new_is_clean_only_when_it_was_read() -> None:
    known = sifted(batch(0, 0, 10))
    both = {AT: 10, ("t", "1"): 5}
    assert not known.clean({AT: 0}, both)
    known.told(
        batch(1, 10, 10)
        | {"sources": [{"startOffset": _offset(10), "endOffset": '{"t": {"0": 10, "1": 5}}'}]}
    )
    assert known.clean({AT: 0}, both)


def test_who_asks_waits_until_the_query_has_read_so_far() -> None:
    known = Sifted("t", patience=60)
    known.told(batch(0, 0, 10))
    answer = asked(known, 0, 20)
    known.told(batch(1, 10, 15))
    assert not answer.done()
    known.told(batch(2, 15, 22))
    assert answer.result(60)


def test_who_asks_gives_up_on_a_query_that_only_says_the_same_again() -> None:
    known = Sifted("t", patience=0.2)
    known.told(idle(1, 10))
    answer = asked(known, 10, 20)

    def told_again() -> bool:
        known.told(idle(1, 10))
        return answer.done()

    eventually(told_again, poll=0.01)
    assert not answer.result()


def test_who_asks_does_not_wait_when_it_can_not_become_clean_or_is_to_end() -> None:
    known = Sifted("t", patience=3600)
    known.told(batch(0, 0, 10))
    answer = asked(known, 0, 20)
    known.told(batch(1, 10, 15, refused=1))
    assert not answer.result(60)
    answer = asked(known, 15, 20)
    known.close()
    assert not answer.result(60)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.sampled_from([0, 0, 0, 1, None]), st.booleans()), max_size=12),
    st.integers(0, 40),
    st.integers(0, 40),
)
def test_whatever_is_told_and_missed_no_refusal_is_called_clean(
    story: list[tuple[int, int | None, bool]], since: int, length: int
) -> None:
    known, at = Sifted("t", patience=0), 0
    seen: set[int] = set()  # offsets that were read and told to be good
    for number, (records, refused, missed) in enumerate(story):
        if not missed:
            known.told(batch(number, at, at + records, refused))
            seen |= set(range(at, at + records)) if refused == 0 else set()
        at += records
    if clean(known, since, since + length):
        assert set(range(since, since + length)) <= seen
