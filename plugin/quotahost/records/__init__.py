"""The records that brokers and the pipeline exchange over Kafka topics: one module for each, value and JSON together.

Private, but the JSON schemas in ``schemas/``, which other programs may write and read. Every reader decodes a record
here, so that all readers take or refuse the same bytes for the same reason. The package imports ``model`` alone;
plugins and the pipeline import it.
"""
