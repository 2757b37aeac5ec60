"""The door to Kafka for plugins and commands; it alone imports confluent_kafka, the Python binding of librdkafka."""
