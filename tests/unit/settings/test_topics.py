"""Tests ``topics.*`` and its lists of names and rates: accepted texts, and errors that name a remedy."""

import re

import pytest

from quotahost.records.topics import TOPICS
from quotahost.settings.declaration import PREFIX
from quotahost.settings.types import parse_rates
from tests.unit.settings.properties import read, refused, shown

TOTAL = "topics.total.bytes.in.per.sec.threshold"
OWN = "topics.bytes.in.per.sec.threshold"
ERROR = "topics.reject.error"
SPARED = "topics.spared"


def test_without_a_total_there_are_no_topic_quotas() -> None:
    for topics in (read().topics, read({TOTAL: "unlimited"}).topics):
        assert (topics.total, topics.thresholds, topics.reject_error) == (None, (), "NOT_ENOUGH_REPLICAS")


@pytest.mark.proves("v1.topic-threshold")
def test_thresholds_are_read_with_dots_in_names_and_units_and_shown_in_full() -> None:
    settings = read({TOTAL: "100M", OWN: " important.v1 : 50M , other_2-x:5Ki", ERROR: "policy-violation"})
    assert settings.topics.total == 100_000_000
    assert settings.topics.thresholds == (("important.v1", 50_000_000), ("other_2-x", 5120))
    assert settings.topics.reject_error == "POLICY_VIOLATION"
    assert shown(settings)[OWN] == "important.v1: 50,000,000 bytes/s, other_2-x: 5,120 bytes/s"
    assert len(read({TOTAL: "0.3Ki", OWN: "a:0.1Ki,b:0.1Ki,c:0.1Ki"}).topics.thresholds) == 3, "the sum is the total"
    assert read({TOTAL: "10M", OWN: "__mine:1M"}).topics.thresholds == (("__mine", 1_000_000),), "__mine is allowed"


def test_by_default_kafkas_and_quotahosts_own_topics_are_spared_by_their_whole_names() -> None:
    kafkas = ["__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata",
              "__remote_log_metadata"]  # fmt: skip
    for given, spared in (({}, kafkas), ({SPARED: "a, b,a"}, ["a", "b"]), ({SPARED: ""}, [])):
        assert [*read(given).spared_topics] == spared + [topic.name for topic in TOPICS]


PREFIXED = {"topics.prefix": "my-", TOTAL: "100M", OWN: "my-snapshots:60M"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({TOTAL: "10M", OWN: "a:6M,b:5M"}, ["11,000,000", "together, above the 10,000,000", TOTAL, "lower them"]),
        ({OWN: "a:6M"}, [f"set {TOTAL}"]),
        ({"topics.prefix": "__mine_", OWN: "a:6M"}, [f"{PREFIX}{OWN}=a:6M: topics have thresholds"]),
        ({TOTAL: "10M", OWN: "a b:1M"}, ["'a b'", "is no topic's"]),
        ({TOTAL: "10M", OWN: "a:unlimited"}, ["rate unlimited", "write bytes/s"]),
        ({TOTAL: "10M", OWN: "__consumer_offsets:1M"}, ["topic __consumer_offsets", SPARED, "remove its threshold"]),
        ({TOTAL: "10M", OWN: "a:1M", SPARED: "a"}, ["topic a has a threshold", SPARED]),
        # quotahost's own topics are never turned back, whatever their names and the list.
        *((PREFIXED | spared, ["topic my-snapshots has a threshold, but is never turned back"])
          for spared in ({}, {SPARED: "mine"})),
        ({SPARED: "a,b*"}, [SPARED, "'b*'", "is no topic's"]),
    ],
)  # fmt: skip
def test_an_error_names_the_property_the_value_and_the_remedy(given: dict[str, str], words: list[str]) -> None:
    message = refused(given)
    assert message.startswith(PREFIX + "topics.")
    assert [word for word in words if word not in message] == []


# ---- ``clientA:4M,clientB:10M``, the form of KIP-13's overrides ----


@pytest.mark.parametrize(
    ("text", "rates"),
    [
        ("clientA:4M,clientB:10M", {"clientA": 4e6, "clientB": 10e6}),
        ('"clientA:4M,clientB:10M"', {"clientA": 4e6, "clientB": 10e6}),  # KIP-13's own form
        (" a b : 4M ,\tc:1Ki ", {"a b": 4e6, "c": 1024}),
        (r"ns\:app:4M,CN=a\,O=b:2M,back\\slash:1M,\ x\ :3M",
         {"ns:app": 4e6, "CN=a,O=b": 2e6, "back\\slash": 1e6, " x ": 3e6}),
        ("a:unlimited,b\\\nc:1M", {"a": None, "b\nc": 1e6}),
        *((text, {}) for text in ("", "  ", '""')),
    ],
)  # fmt: skip
def test_a_list_of_names_and_rates_is_understood(text: str, rates: dict[str, float | None]) -> None:
    assert parse_rates(text) == rates


@pytest.mark.parametrize(
    ("text", "entry", "remedy"),
    [
        ("a:4M,clientB", "'clientB'", "write NAME:RATE"),
        ("a:4M,b:fast", "'b', whose rate is not a number", "write"),
        ("a:-4M", "'a'", "whose rate must be finite and above 0"),
        ("a:", "'a'", "whose rate is empty"),
        ("ns:app:4M", "'ns:app:4M'", r"and \: and \, in a name"),
        ("a:4M b:5M", "'a:4M b:5M'", "a comma between entries"),
        (":4M", "':4M'", "write NAME:RATE"),
        ("a:4M, :5M", "' :5M'", "write NAME:RATE"),
        pytest.param("a:4M," + 20_000 * " " + "b", "'   ", "write NAME:RATE", id="20,000 blanks are parsed quickly"),
        ("a:4M,,b:5M", "',b:5M'", "a comma between entries"),
        ("a:4M,a:5M", "'a' twice", "remove one"),
        ("a\\:4M", r"'a\\:4M'", "write NAME:RATE"),
    ],
)
def test_an_error_names_the_entry_and_the_remedy(text: str, entry: str, remedy: str) -> None:
    with pytest.raises(ValueError, match=re.escape(entry)) as refused:
        parse_rates(text)
    assert remedy in str(refused.value)
