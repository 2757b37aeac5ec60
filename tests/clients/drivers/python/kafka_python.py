"""The driver of kafka-python, 2 and 3."""

from __future__ import annotations

from driver import Driver, created

import kafka
from kafka.admin import KafkaAdminClient, NewTopic

driver = Driver(kafka.__version__)
spec = driver.spec
# In version 3 the time for which it goes on is one setting; in version 2 it does not try again by default.
TUNED = (
    {"delivery_timeout_ms": 600_000}
    if int(kafka.__version__.split(".")[0]) >= 3
    else {"retries": 1_000_000, "max_in_flight_requests_per_connection": 1, "request_timeout_ms": 600_000}
)

if spec["Create"]:
    admin = KafkaAdminClient(**driver.connection)
    created(lambda: admin.create_topics([NewTopic(spec["Topic"], 1, 1)]))

producer = kafka.KafkaProducer(acks="all", **driver.connection, **(TUNED if driver.tuned else {}))


def send(number: int, value: bytes) -> None:
    try:
        future = producer.send(spec["Topic"], value)
    except Exception as error:
        driver.delivered(number, error)
        return
    future.add_callback(lambda _: driver.delivered(number))
    future.add_errback(lambda error: driver.delivered(number, error))


driver.run(send)
