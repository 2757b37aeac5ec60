"""The records that brokers and the pipeline exchange over Kafka topics: one module for each, value and JSON together.

This package is private, but other programs may write and read the JSON (docs/reference/records.md). All readers decode
records here, so they accept or refuse the same bytes for the same reason.
"""
