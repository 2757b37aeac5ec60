"""The door to Kafka for plugins and commands; it alone imports confluent_kafka, the Python binding of librdkafka.

How to connect: ``listeners`` (from the broker's own properties), ``client``. Records: ``follower`` reads a topic and
goes on, ``latest_record`` keeps the newest and its age, ``publisher`` writes. The cluster: ``admin`` changes and
describes, ``registered_brokers`` asks again and again. For operators: ``rights`` (``doctor``) and ``commands``
(``quotas``, ``top``). Private.
"""
