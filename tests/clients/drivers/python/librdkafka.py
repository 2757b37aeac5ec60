"""The driver of librdkafka, by confluent-kafka."""

from __future__ import annotations

from confluent_kafka import Producer, libversion
from confluent_kafka.admin import AdminClient, NewTopic
from driver import Driver, created

driver = Driver(libversion()[0])
spec = driver.spec
CONFIG = {
    "bootstrap.servers": spec["Bootstrap"],
    "client.id": spec["User"],
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": spec["User"],
    "sasl.password": spec["User"],
}

if spec["Create"]:
    admin = AdminClient(CONFIG)
    created(lambda: admin.create_topics([NewTopic(spec["Topic"], 1, 1)])[spec["Topic"]].result(30))

producer = Producer(CONFIG | ({"enable.idempotence": True} if driver.tuned else {}))


def send(number: int, value: bytes) -> None:
    producer.produce(spec["Topic"], value, on_delivery=lambda error, _: driver.delivered(number, error))


driver.run(send, lambda: producer.poll(0))
