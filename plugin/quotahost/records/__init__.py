"""The records that brokers and the pipeline exchange over Kafka topics: one module for each, value and JSON together.

Private, but the JSON, which other programs may write and read (docs/reference/records.md). Every reader decodes a
record here, so that all readers take or refuse the same bytes for the same reason.
"""
