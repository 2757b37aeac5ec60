"""The plugins' own Kafka client (librdkafka): its configuration, compacted topics, following one."""
