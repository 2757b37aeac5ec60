"""How brokers and clients connect, read from Kafka's own properties: listeners, JAAS, and librdkafka's names for them.

The host derives from it the principals of brokers and the plugins' client (``quotahost.host``), the command line what
``doctor`` says of a broker. Private. Many values are secrets, which no function here logs or puts into an error.
"""
