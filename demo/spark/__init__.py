"""The demo's third part: three brokers and the Spark pipeline, which is killed in the middle."""
