"""The Kafka clients of plugins and commands; only this package imports confluent_kafka, librdkafka's Python binding."""
