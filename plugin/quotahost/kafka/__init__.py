"""The plugins' door to Kafka: follow or publish to a compacted topic, and ask the cluster for its brokers.

``follower`` reads a topic and ``latest_record`` keeps its newest record; ``publisher`` writes to one, which ``topics``
creates; ``registered_brokers`` asks the cluster by way of the broker's own Admin client; ``rights`` asks a running
cluster for ``quotahost doctor``. Private: only ``broker.plugins`` and that command may import it, and
only it imports confluent_kafka, the Python binding of librdkafka.
"""
