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


def test_dead_letters_are_counted_as_spark_observed_them() -> None:
    shown = Progress()
    reported = progress('{"t":{"0":7}}', '{"t":{"0":7}}')
    shown.batch("refused", reported | {"observedMetrics": {"refused": {"refused": 2}}})
    shown.batch("refused", reported)
    assert shown.registry.get_sample_value("quotahost_pipeline_refused_total") == 2
