"""The records that brokers and the pipeline exchange over Kafka topics: one module for each, value and JSON together.

Private, but the JSON, which other programs may write and read (docs/reference/records.md); ``schemas/snapshot.json`` is
proposal 035's own schema. Every reader decodes a record here, so that all readers take or refuse the same bytes for the
same reason. The package imports ``model`` alone; plugins and the pipeline import it.
"""
