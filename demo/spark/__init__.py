"""The demo's part with Spark: three brokers, the pipeline, and a kill -9 in the middle."""
