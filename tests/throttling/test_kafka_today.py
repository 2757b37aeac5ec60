"""Tests names and defaults of today's Kafka where the five documents say something else.

For the same records, the models return the numbers of Kafka's own classes.
"""

import itertools
import subprocess
from collections.abc import Callable, Mapping

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from quotahost.throttling import SampledRate, TokenBucket
from tests.throttling.oracle import HERE, Oracle, compiled

Today = dict[str, set[str]]


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Today:
    """The words of each line that KafkaToday prints, by the line's subject."""
    command = compiled("KafkaToday", tmp_path_factory.mktemp("today"), HERE / "KafkaToday.java")
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    pairs = (line.split("\t") for line in printed.splitlines())
    return {what: set(words.split()) for what, words in pairs}


@pytest.mark.proves("kip-13.windows", "kip-599.burst-by-default", "kip-599.windows")
def test_the_windows_are_11_of_1_s_by_default_where_kip_13_says_10(today: Today) -> None:
    for quotas in ("quota", "controller.quota"):
        assert (today[f"{quotas}.window.num"], today[f"{quotas}.window.size.seconds"]) == ({"11"}, {"1"})


@pytest.mark.proves("kip-13.static-config", "kip-13.migration", "kip-599.zookeeper", "v1.total-threshold")
@pytest.mark.proves("v1.topic-threshold")
def test_static_quotas_thresholds_the_brokers_protocol_and_zookeeper_are_configs_of_no_broker_or_topic(
    today: Today,
) -> None:
    found = today["broker-configs"] | today["topic-configs"]
    assert {"client.quota.callback.class", "max.message.bytes"} <= found
    others = ("quota.producer", "quota.consumer", "inter.broker.protocol.version", "zookeeper")
    assert not {name for name in found if name.startswith(others) or "bytes.in" in name}
    assert {"producer_byte_rate", "consumer_byte_rate"} <= today["quota-names"]


@pytest.mark.proves("kip-13.consumer-group", "kip-13.client-and-topic")
def test_a_quota_is_of_a_user_or_a_client_id_and_never_of_a_consumer_group_a_topic_or_a_partition(today: Today) -> None:
    assert today["entities"] == {"USER", "CLIENT_ID", "DEFAULT_USER", "DEFAULT_CLIENT_ID"}


@pytest.mark.proves("kip-13.violation", "kip-13.delay-in-exception")
def test_a_value_above_a_bound_and_not_at_it_throws_a_violation_which_carries_no_delay(today: Today) -> None:
    assert today["recorded-at-a-bound"] == {"null"}
    assert today["recorded-above-a-bound"] == {"QuotaViolationException"}
    assert {"metric", "value", "bound"} <= today["violation-methods"]
    assert not {name for name in today["violation-methods"] if "delay" in name.lower() or "throttle" in name.lower()}


@pytest.mark.proves("kip-599-revision.bucket-stat")
def test_a_token_bucket_is_a_measurable_stat_with_or_without_a_unit_of_time(today: Today) -> None:
    assert today["bucket-is"] == {"MeasurableStat"}
    assert today["bucket-is-made-with"] == {"nothing", "TimeUnit"}


@pytest.mark.proves("kip-13.throttle-time-versions")
def test_every_produce_and_fetch_request_that_kafka_takes_has_a_throttle_time_in_its_response(today: Today) -> None:
    """KIP-13 adds the throttle time in version 1, and Kafka has removed the older versions."""
    assert (today["oldest-Produce"], today["oldest-Fetch"]) == ({"3"}, {"4"})


@pytest.mark.proves("kip-599.type-names", "kip-599-revision.type-name", "kip-599.metric")
def test_kip_599_has_one_quota_by_the_diffs_name_a_group_of_metrics_like_it_and_no_burst(today: Today) -> None:
    assert today["mutation-metrics-group"] == {"ControllerMutation"}
    assert {name for name in today["quota-names"] if "mutation" in name} == {"controller_mutation_rate"}
    assert not {name for name in today["quota-names"] | today["broker-configs"] if "burst" in name}


@pytest.mark.proves("kip-599.rate-type", "kip-599.unlimited")
def test_kip_599s_rate_is_a_double_and_unlimited_by_a_number_of_31_bits(today: Today) -> None:
    assert today["mutation-rate-type"] == {"DOUBLE"}
    assert {float(word) for word in today["mutation-rate-default"]} == {2.0**31 - 1}


@pytest.mark.proves("kip-599.error-name", "kip-599-revision.exception")
def test_kip_599s_error_and_exception_have_the_diffs_names(today: Today) -> None:
    assert {name for name in today["errors"] if "QUOTA" in name} == {"THROTTLING_QUOTA_EXCEEDED"}
    assert today["exception"] == {"ThrottlingQuotaExceededException", "RetriableException"}
    assert today["exception-methods"] == {"throttleTimeMs"}


@pytest.mark.proves("kip-599.no-retry-config")
def test_an_application_opts_out_of_retries_by_an_option_of_the_call_and_not_by_a_config(today: Today) -> None:
    for options in ("CreateTopicsOptions", "CreatePartitionsOptions", "DeleteTopicsOptions"):
        assert {"retryOnQuotaViolation", "shouldRetryOnQuotaViolation"} <= today[f"methods-{options}"]
        assert not {name for name in today[f"methods-{options}"] if "QuotaViolated" in name}
        assert today[f"retries-by-default-{options}"] == {"true"}
    assert not {name for name in today["admin-configs"] if "quota" in name}


def test_a_quota_callback_answers_a_limit_and_no_delay(today: Today) -> None:
    """Proposal 035 says of KIP-257 that its quotas are "defined in terms of how much of a delay to apply"."""
    assert {"quotaLimit", "quotaMetricTags", "quotaResetRequired"} <= today["callback-methods"]
    assert today["limit-type"] == {"Double"}
    assert not {name for name in today["callback-methods"] if "delay" in name.lower() or "throttle" in name.lower()}


# ---- the same numbers ----

NOW = 1_700_000_000_000
Event = tuple[str, float, int]


def same(numbers: list[float]) -> object:
    return pytest.approx(numbers, rel=1e-9, abs=1e-300, nan_ok=True)


AMOUNTS = st.floats(0, 1e9) | st.integers(0, 10**6).map(float) | st.just(0.0)
BOUNDS = st.floats(1e-6, 1e9) | st.sampled_from([0.0, 1.0, 5e-324, 1e308])
DENSE = st.sampled_from([100, 400, 500, 999, 1000, 1100])  # so that all samples are used
SPARSE = st.integers(0, 3000) | st.sampled_from([0, 1, 999, 1000, 1001, 9_999, 10_000, 11_000, 200_000])


def timed(kinds: list[str], values: st.SearchStrategy[float]) -> st.SearchStrategy[list[Event]]:
    """Events with times that never decrease."""

    def with_times(events: list[tuple[str, float, int]]) -> list[Event]:
        times = itertools.accumulate(step for _, _, step in events)
        return [(kind, value, NOW + t) for (kind, value, _), t in zip(events, times, strict=True)]

    def lists(steps: st.SearchStrategy[int]) -> st.SearchStrategy[list[tuple[str, float, int]]]:
        return st.lists(st.tuples(st.sampled_from(kinds), values, steps), max_size=60)

    return (lists(DENSE) | lists(SPARSE)).map(with_times)


def check(
    oracle: Oracle, first: str, events: list[Event], record: Callable[[float, int], None],
    asked: Mapping[str, tuple[str, Callable[[int], float]]],
) -> None:  # fmt: skip
    """Assert that a model returns Kafka's numbers for the same events, which the oracle gets as lines of text."""
    lines, numbers = [first], []
    for kind, value, now in events:
        if kind == "record":
            record(value, now)
            lines.append(f"record {value!r} {now}")
        else:
            text, answer = asked[kind]
            numbers.append(answer(now))
            lines.append(f"{text} {now}")
    assert oracle.replay(lines) == same(numbers)


@pytest.mark.proves("kip-13.windows", "kip-13.delay")
@hypothesis_settings(max_examples=500)
@given(
    events=timed(["record", "record", "measure", "throttle"], AMOUNTS),
    bound=BOUNDS,
    samples=st.integers(1, 12),
    window_ms=st.sampled_from([1, 100, 1000, 1000, 30_000]),
)
@example([("record", 1e8, NOW), ("throttle", 0.0, NOW)], 1.0, 11, 1000)  # a throttle time beyond an int
def test_a_sampled_rate_and_its_throttle_time_are_kafkas(
    oracle: Oracle, events: list[Event], bound: float, samples: int, window_ms: int
) -> None:
    model = SampledRate(samples, window_ms)
    asked = {"measure": ("measure", model.measure),
             "throttle": (f"throttle {bound!r}", lambda now: model.throttle_ms(bound, now))}  # fmt: skip
    check(oracle, f"rate {samples} {window_ms}", events, model.record, asked)


@pytest.mark.proves("kip-599-revision.bucket", "kip-599-revision.bucket-config", "kip-599-revision.bucket-wait")
@pytest.mark.proves("kip-599.even-spread")
@hypothesis_settings(max_examples=500)
@given(
    events=timed(["record", "measure", "debt"], AMOUNTS),
    quota=st.floats(1e-3, 1e6) | st.integers(1, 1000).map(float),
    samples=st.integers(1, 200),
    window_ms=st.sampled_from([1, 100, 1000, 30_000]),
)
@example([("record", 2001.0, NOW), ("debt", 0.0, NOW)], 2000.0, 1, 1000)  # Java rounds half a millisecond up
def test_a_token_bucket_and_its_throttle_time_are_kafkas(
    oracle: Oracle, events: list[Event], quota: float, samples: int, window_ms: int
) -> None:
    model = TokenBucket(quota, samples, window_ms)
    asked = {"measure": ("measure", model.tokens), "debt": ("debt", model.throttle_ms)}
    check(oracle, f"bucket {samples} {window_ms} {quota!r}", events, model.record, asked)
