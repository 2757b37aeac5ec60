"""Strimzi's files of both eras: limits of bytes used (0.1, 0.2 and proposal 035), and of bytes available (0.3, 0.4)."""

from datetime import timedelta

import pytest

from quotahost.model import Limit, LimitType, State
from tests.unit.settings.strimzi.files import ADMIN, BYTES, FALLBACK, INTERVAL, VALIDITY, notes, read, warnings

SOFT, HARD = "static.storage.soft", "static.storage.hard"
#: The example of the README of 0.2.0.
OF_0_2 = {"static.produce": "1000000", "static.fetch": "1000000", SOFT: "10000000", HARD: "20000000", INTERVAL: "5"}
#: The example of the README of 0.4.0, without its comments.
OF_0_4 = {
    "static.produce": "1000000",
    "static.fetch": "1000000",
    f"{ADMIN}bootstrap.servers": "localhost:9092",
    BYTES: "5368709120",
    INTERVAL: "5",
    "static.excluded.principal.name.list": "User:principal1;User:principal2",
}


@pytest.mark.proves("proposal-035.properties-old", "proposal-035.consumed-limits")
def test_a_file_of_0_2_follows_proposal_035_and_looks_at_its_own_disks() -> None:
    settings = read(OF_0_2)
    assert settings.storage_soft == Limit(LimitType.CONSUMED_BYTES, 10_000_000)
    assert settings.storage_hard == Limit(LimitType.CONSUMED_BYTES, 20_000_000)
    assert (settings.factor_source, settings.policy) == ("local", "limits")
    assert settings.fallback_action is State.PAUSE
    assert settings.validity == timedelta(minutes=1), "quotahost's own: the file and its plugin know none"
    assert warnings(OF_0_2) == []
    assert any("fallback.action=PAUSE" in note and "proposal 035" in note for note in notes(OF_0_2))
    assert f"{INTERVAL}=5 is not used: factor.source is local" in notes(OF_0_2)


def test_a_file_of_0_4_keeps_the_fallback_of_0_4() -> None:
    settings = read(OF_0_4)
    assert settings.factor_source == "log-dirs"
    assert settings.fallback_action is State.OPEN
    assert settings.validity == timedelta(minutes=5)


LIMITS = [
    {HARD: "20G"},
    {SOFT: "10G"},
    {f"{HARD}.min-free-bytes": "5G"},
    {f"{HARD}.min-free-percent": "0.05"},
    {f"{SOFT}.min-free-percent": "0.1", HARD: "none"},
]


@pytest.mark.proves("proposal-035.fallback")
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("theirs", [{INTERVAL: "30"}, {VALIDITY: "PT2M"}, {f"{ADMIN}bootstrap.servers": "a:1"}])
@pytest.mark.parametrize("source", [{}, {"factor.source": "log-dirs"}, {"factor.source": "snapshots"}])
def test_with_a_limit_of_the_proposal_a_file_ends_in_its_fallback_whatever_else_is_strimzi_s(
    limit: dict[str, str], theirs: dict[str, str], source: dict[str, str]
) -> None:
    settings = read({**limit, **theirs, **source})
    assert settings.fallback_action is State.PAUSE
    assert settings.validity == timedelta(minutes=2 if VALIDITY in theirs else 1)


@pytest.mark.parametrize(
    ("stated", "action"), [({FALLBACK: "1.0"}, State.OPEN), ({"fallback.action": "OPEN"}, State.OPEN)]
)
def test_a_fallback_that_the_file_states_is_the_one(stated: dict[str, str], action: State) -> None:
    assert read({**OF_0_2, **stated}).fallback_action is action
    assert not any("proposal 035" in note for note in notes({**OF_0_2, **stated}))
    assert read({**OF_0_4, FALLBACK: "0.0"}).fallback_action is State.PAUSE


def test_an_interval_of_0_turns_protection_off_in_both_eras() -> None:
    for file in (OF_0_2, OF_0_4):
        off = {**file, INTERVAL: "0"}
        assert read(off).factor_source is None
        assert any("disks are not protected" in warning for warning in warnings(off))
