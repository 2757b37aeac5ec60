"""The plugins' door to Kafka: follow a compacted topic, publish to it, make it, and list the registered brokers.

Private to ``quotahost.plugins``; the only package that imports confluent_kafka.
"""
