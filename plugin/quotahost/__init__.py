"""Python quotas inside a Kafka broker: one jar, one property."""
