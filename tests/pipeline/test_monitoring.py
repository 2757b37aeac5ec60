"""The metrics of the pipeline, made from the progress that Spark reports."""

from typing import Any

from quotahost.pipeline.monitoring import Progress

BEHIND = "quotahost_pipeline_records_behind"


def progress(end: Any, latest: Any) -> dict[str, Any]:
    source = {"endOffset": end, "latestOffset": latest}
    return {
        "batchId": 19,
        "numInputRows": 3,
        "durationMs": {"addBatch": 700, "triggerExecution": 900},
        "sources": [source],
        "stateOperators": [],
        "observedMetrics": {},
    }


def test_records_that_are_not_read_yet_are_shown() -> None:
    shown = Progress()
    shown.batch("volumes", progress('{"t":{"0":7,"1":2}}', '{"t":{"0":10,"1":2}}'))
    assert shown.registry.get_sample_value(BEHIND, {"query": "volumes"}) == 3


def test_a_batch_that_is_done_again_after_a_restart_has_no_latest_offsets_and_is_no_error() -> None:
    shown = Progress()
    for nothing in ("null", None):
        shown.batch("volumes", progress('{"t":{"0":7}}', nothing))
    assert shown.registry.get_sample_value(BEHIND, {"query": "volumes"}) == 0


def test_a_look_that_found_nothing_does_not_hide_the_batch_of_the_same_number() -> None:
    shown = Progress()
    reported = progress('{"t":{"0":7}}', '{"t":{"0":7}}')
    shown.batch("refused", reported | {"numInputRows": 0, "durationMs": {"latestOffset": 3}})
    shown.batch("refused", reported | {"observedMetrics": {"refused": {"refused": 2}}})
    assert shown.registry.get_sample_value("quotahost_pipeline_refused_total") == 2


def test_batches_between_two_looks_are_counted_and_none_twice() -> None:
    shown = Progress()
    reported = [
        progress('{"t":{"0":7}}', '{"t":{"0":7}}') | {"batchId": number, "numInputRows": 10**number}
        for number in range(4)
    ]
    assert shown.follows("volumes", reported[0])
    shown.batch("volumes", reported[0])
    assert shown.follows("volumes", reported[0])
    assert shown.follows("volumes", reported[1])
    assert not shown.follows("volumes", reported[3])
    for each in reported + reported[1:3]:
        shown.batch("volumes", each)
    labels = {"query": "volumes"}
    assert shown.registry.get_sample_value("quotahost_pipeline_rows_total", labels) == 1111
    assert shown.registry.get_sample_value("quotahost_pipeline_batches_total", labels) == 4
