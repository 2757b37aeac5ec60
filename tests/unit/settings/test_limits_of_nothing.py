"""``0`` and ``0.0`` as what must stay free (proposal 035: ``Expressed as 0.0..1.0``), and as bytes used."""

import pytest

from quotahost.model import Limit, LimitType
from quotahost.model.volumes import byte_limits
from quotahost.settings.declaration import SettingsError
from tests.fakes.plugin_context import settings
from tests.unit.broker.plugins.policies.test_limits import policy, used

SHARE, BYTES = "static__storage__{}__min_free_percent", "static__storage__{}__min_free_bytes"
ZEROS = pytest.mark.parametrize(
    ("name", "text"), [(SHARE, "0"), (SHARE, "0.0"), (SHARE, "0%"), (BYTES, "0"), (BYTES, "0.0")]
)


@pytest.mark.proves("proposal-035.properties-new")
@ZEROS
def test_a_hard_limit_of_nothing_free_stops_producers_when_nothing_is_free(name: str, text: str) -> None:
    hard = settings(**{name.format("hard"): text}).storage_hard
    judge = policy(Limit(LimitType.MIN_FREE_PERCENTAGE, 50), hard)
    assert [judge.quota_factor(used(consumed, 20)) for consumed in (10, 15, 19, 20, 21)] == [1, 0.5, 0.1, 0, 0]


@ZEROS
def test_a_soft_limit_of_nothing_free_slows_nobody_before_nothing_is_free(name: str, text: str) -> None:
    soft = settings(**{name.format("soft"): text}).storage_soft
    judge = policy(soft)
    assert [judge.quota_factor(used(consumed, 20)) for consumed in (0, 19, 20)] == [1, 1, 0]


def test_an_override_may_leave_nothing_free_too() -> None:
    text = "/d soft.min-free-percent=0.0 hard.min-free-bytes=0"
    (override,) = settings(static__storage__overrides=text).static.storage.overrides
    assert override.soft == Limit(LimitType.MIN_FREE_PERCENTAGE, 0.0)
    found = byte_limits(used(0, 20), override.soft, override.hard)
    assert found is not None
    assert (found.soft, found.hard, found.contradict) == (20, 20, False)


@pytest.mark.proves("proposal-035.consumed-nothing")
@pytest.mark.parametrize("side", ["soft", "hard"])
def test_0_bytes_used_is_refused_since_it_may_mean_always_or_never(side: str) -> None:
    with pytest.raises(SettingsError, match=r"static\.storage\.\w+=0: must be at least one byte, or none"):
        settings(**{f"static__storage__{side}": "0"})


@pytest.mark.proves("proposal-035.properties-new")
@pytest.mark.parametrize("text", ["-0.1", "-1", "1.1", "101%"])
def test_a_share_is_from_0_to_1(text: str) -> None:
    with pytest.raises(SettingsError, match=r"write 0\.05 or 5%"):
        settings(static__storage__hard__min_free_percent=text)


@pytest.mark.parametrize("side", ["soft", "hard"])
def test_a_part_of_a_byte_is_refused_since_a_share_was_meant(side: str) -> None:
    with pytest.raises(SettingsError, match=r"min-free-bytes=0\.05"):
        settings(**{f"static__storage__{side}__min_free_bytes": "0.05"})
