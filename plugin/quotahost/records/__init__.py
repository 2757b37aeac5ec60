"""The records that brokers and the pipeline exchange over Kafka topics: one module for each, value and JSON together.

Private to quotahost; the JSON schemas in ``schemas/`` are public. Every reader decodes a record here, so that all
readers take, or refuse, the same bytes for the same reason. Knows only ``model``, ``units`` and ``text``.
"""
