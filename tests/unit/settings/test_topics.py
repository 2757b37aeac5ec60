"""``topics.*``: which texts are understood, and which errors name what would be right."""

import random

import pytest

from quotahost.records.topics import TOPICS
from quotahost.settings.broker import Settings, describe
from quotahost.settings.declaration import PREFIX, SettingsError

TOTAL = "topics.total.bytes.in.per.sec.threshold"
OWN = "topics.bytes.in.per.sec.threshold"
ERROR = "topics.reject.error"
SPARED = "topics.spared"


def read(**given: str) -> Settings:
    names = {"total": TOTAL, "own": OWN, "error": ERROR, "spared": SPARED}
    return Settings.from_properties({PREFIX + names[key]: text for key, text in given.items()})


def refused(**given: str) -> str:
    with pytest.raises(SettingsError) as error:
        read(**given)
    return str(error.value)


def test_without_a_total_there_are_no_topic_quotas() -> None:
    for topics in (read().topics, read(total="unlimited").topics):
        assert (topics.total, topics.thresholds, topics.reject_error) == (None, (), "NOT_ENOUGH_REPLICAS")


@pytest.mark.proves("v1.topic-threshold")
def test_thresholds_are_read_with_dots_in_names_and_units_and_shown_in_full() -> None:
    settings = read(total="100M", own=" important.v1 : 50M , other_2-x:5Ki", error="policy-violation")
    assert settings.topics.total == 100_000_000
    assert settings.topics.thresholds == (("important.v1", 50_000_000), ("other_2-x", 5120))
    assert settings.topics.reject_error == "POLICY_VIOLATION"
    assert read(total="10M", own="__mine:1M").topics.thresholds == (("__mine", 1_000_000),), "it only looks internal"
    shown = {row.property: row.value for row in describe(settings)}
    assert shown[PREFIX + OWN] == "important.v1: 50,000,000 bytes/s, other_2-x: 5,120 bytes/s"


def test_thresholds_may_take_all_and_not_a_byte_more_whatever_their_order() -> None:
    parts = [f"t{n}:{n}.1" for n in range(1, 100)]
    total = sum(range(1, 100)) + 9.9
    for seed in range(5):
        random.Random(seed).shuffle(parts)
        assert len(read(total=repr(total), own=",".join(parts)).topics.thresholds) == 99
        assert "together, above the" in refused(total=repr(total - 1), own=",".join(parts))


def test_by_default_kafkas_and_quotahosts_own_topics_are_spared_by_their_whole_names() -> None:
    spared = read().topics.spared
    assert {"__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata"} < set(spared)
    assert {topic.name for topic in TOPICS} < set(spared)
    assert all("*" not in name for name in spared)
    assert read(spared="a, b,a").topics.spared == ("a", "b")
    assert read(spared="").topics.spared == ()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"total": "10M", "own": "a:6M,b:5M"}, ["11,000,000", "10,000,000", TOTAL, "lower them"]),
        ({"own": "a:6M"}, [f"set {TOTAL}"]),
        ({"total": "10M", "own": "a"}, ["'a' without a rate", "write NAME:RATE"]),
        ({"total": "10M", "own": "a b:1M"}, ["'a b:1M'", "is no topic's"]),
        ({"total": "10M", "own": "a:unlimited"}, ["rate unlimited", "write bytes/s"]),
        ({"total": "10M", "own": "__consumer_offsets:1M"}, ["topic __consumer_offsets", SPARED, "remove one"]),
        ({"total": "10M", "own": "a:1M", "spared": "a"}, ["topic a has a threshold", SPARED]),
        ({"spared": "a,b*"}, [SPARED, "'b*'", "is no topic's"]),
        ({"total": "-1"}, [TOTAL, "above 0"]),
        ({"error": "CORRUPT_MESSAGE"}, [ERROR, "NOT_ENOUGH_REPLICAS, THROTTLING_QUOTA_EXCEEDED, POLICY"]),
        ({"error": "POLICY_VIOLATE"}, ["did you mean POLICY_VIOLATION?"]),
    ],
)
def test_an_error_names_the_property_the_value_and_the_remedy(given: dict[str, str], words: list[str]) -> None:
    message = refused(**given)
    assert message.startswith(PREFIX + "topics.")
    assert [word for word in words if word not in message] == []


def test_thresholds_without_a_total_are_named_whatever_else_begins_with_topics() -> None:
    given = {PREFIX + "topics.prefix": "__mine_", PREFIX + OWN: "a:6M"}
    with pytest.raises(SettingsError, match=rf"^{PREFIX}{OWN}=a:6M: topics have thresholds"):
        Settings.from_properties(given)


@pytest.mark.parametrize("spared", [{}, {PREFIX + SPARED: "mine"}], ids=["by default", "with another list"])
def test_a_threshold_of_a_topic_of_quotahosts_own_is_an_error_whatever_its_name(spared: dict[str, str]) -> None:
    given = {PREFIX + "topics.prefix": "my-", PREFIX + TOTAL: "100M", PREFIX + OWN: "my-snapshots:60M"}
    with pytest.raises(SettingsError, match=r"topic my-snapshots has a threshold, but is never turned back"):
        Settings.from_properties(given | spared)
