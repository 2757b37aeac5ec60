"""Records of looks and of those who watch: whatever is looked at, it fits a record."""

from math import inf, nan

from quotahost.model import Client, VolumeUse
from quotahost.model.use import MeasuredVolume, TopicUse
from quotahost.records import look as look_codec
from quotahost.records.look import MAX_BYTES, MAX_USES, Answered, of
from tests.unit.cli.top.uses import look, use


def test_whatever_the_clients_are_called_and_use_their_look_fits_a_record() -> None:
    # Each character becomes six in JSON; a number that JSON lacks, and half of a surrogate pair, spoil nothing.
    many = [use("\u20ac" * 30, f"{number}\ud800") for number in range(3 * MAX_USES)]
    odd = [use("nan", rate=nan), use("inf", quota=inf)]
    answers = [Answered("w", ("x" * 1_000_000,)), *[Answered(str(n), ("\u20ac" * 9_000,)) for n in range(9)]]
    seen = look(
        [*odd, *many], cause="\u20ac" * 10**6,
        volumes=[VolumeUse(f"\ud800{n}" * n, 10**15, n if n % 2 else inf) for n in range(1000)],
        marks=[(Client("\u20ac" * n, "\ud800"), "t") for n in range(1000)],
    )  # fmt: skip
    full = MeasuredVolume(
        "v", 1, 1, ["\ud800" * 5_000] * 99, 2.0, 1.0, [TopicUse("\ud800" * 5_000, 1, 1.0)] * 99,
        ["\ud800" * 5_000] * 99,
    )  # fmt: skip
    value = look_codec.encode(of("1", "c", seen, answers, [full] * 9))
    assert len(value) <= MAX_BYTES
    found = look_codec.decode(b"1", value)
    assert 900 < len(found.uses) <= MAX_USES
    assert found.look.left_out
    assert found.uses[0].client_id == "0?"
    assert [each.watcher for each in found.answers] == ["0", "1"]
    assert (len(found.volumes) > 40, len(found.marks), len(found.opened)) == (True, 10, 2)
    assert found.look.where == "broker 1"


def test_a_look_tells_whether_its_record_has_room_for_all() -> None:
    few, long = [use()] * 9, [use("u" * 100, "c" * 1_000)] * 100
    assert [of("1", "c", look(uses)).left_out for uses in (few, long)] == [False, True]
    assert of("1", "c", look(few, left_out=True)).left_out


def test_a_look_of_an_earlier_version_has_no_addresses() -> None:
    value = look_codec.encode(of("1", "c", look([use(address="10.0.0.7")])))
    assert look_codec.decode(b"1", value).uses[0].address == "10.0.0.7"
    older = value.replace(b',"address":"10.0.0.7"', b"")
    assert older != value
    assert look_codec.decode(b"1", older).uses[0].address == ""
