"""Records of looks and of those who watch: they keep their schemas, come back as they were, and fit a record."""

from __future__ import annotations

import json
from importlib.resources import files
from math import inf, nan

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from quotahost.model import Bound, Client, ClientUse, QuotaType, State
from quotahost.records import look as look_codec
from quotahost.records import watch as watch_codec
from quotahost.records.look import MAX_BYTES, MAX_USES, Answered, BrokerLook, of
from quotahost.records.watch import MOST_SECONDS, Watch
from tests.unit.cli.top.uses import look, use
from tests.unit.records.test_snapshot import QUICK

LOOK, WATCH = (
    Draft7Validator(json.loads(files("quotahost.records").joinpath(f"schemas/{name}.json").read_text()))
    for name in ("look", "watch")
)
names = st.text(st.characters(codec="utf-8"), max_size=20)
numbers = st.floats(allow_nan=False, allow_infinity=False)
counts = st.integers(0, 10**6)
rates = st.none() | numbers
uses = st.builds(
    ClientUse, st.sampled_from(QuotaType), names, names, names, numbers, rates, rates, numbers, st.sampled_from(Bound),
    numbers, names,
)  # fmt: skip
answers = st.builds(Answered, names, st.lists(names, max_size=3).map(tuple))
looks = st.builds(
    BrokerLook, names, st.sampled_from(State), numbers, numbers, names, st.sampled_from(["open", "closed", "none"]),
    st.integers(-1, 10), counts, counts, st.lists(uses, max_size=4).map(tuple),
    st.lists(answers, max_size=4).map(tuple), names, st.booleans(),
)  # fmt: skip
clients = st.builds(Client, names, names)
watches = st.builds(Watch, names.filter(bool), st.integers(0, MOST_SECONDS), st.none() | clients)


@QUICK
@given(looks)
def test_a_look_keeps_its_schema_and_comes_back(record: BrokerLook) -> None:
    value = look_codec.encode(record)
    LOOK.validate(json.loads(value))
    assert look_codec.decode(record.broker.encode(), value) == record


@QUICK
@given(watches)
def test_a_watch_keeps_its_schema_and_comes_back(record: Watch) -> None:
    value = watch_codec.encode(record)
    WATCH.validate(json.loads(value))
    assert watch_codec.decode(b"watch", value) == record


def test_whatever_the_clients_are_called_and_use_their_look_fits_a_record() -> None:
    # Each character becomes six in JSON; a number that JSON lacks, and half of a surrogate pair, spoil nothing.
    many = [use("\u20ac" * 30, f"{number}\ud800") for number in range(3 * MAX_USES)]
    odd = [use("nan", rate=nan), use("inf", quota=inf)]
    answer = Answered("w", ("x" * 1_000_000,))
    value = look_codec.encode(of("1", "c", look([*odd, *many], cause="y" * 10**6), [answer, Answered("v", ("z",))]))
    assert len(value) <= MAX_BYTES
    found = look_codec.decode(b"1", value)
    assert 900 < len(found.uses) <= MAX_USES
    assert found.look.left_out
    assert found.uses[0].client_id == "0?"
    assert found.answers == (Answered("v", ("z",)),)
    assert found.look.where == "broker 1"


def test_a_look_tells_whether_its_record_has_room_for_all() -> None:
    few, long = [use()] * 9, [use("u" * 100, "c" * 1_000)] * 100
    assert [of("1", "c", look(uses)).left_out for uses in (few, long)] == [False, True]
    assert of("1", "c", look(few, left_out=True)).left_out
