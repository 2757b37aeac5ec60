"""The drivers of the Python libraries: the first argument is the only library to import, the second one is the spec.

``tests/clients/libraries.py`` explains the lines that a driver prints.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

_VALUE_BYTES = 1000
_lock = threading.Lock()


def report(event: str, **more: object) -> None:
    """Prints one line."""
    line = json.dumps({"event": event, "ms": int(time.time() * 1000), **more})
    with _lock:
        print(line, flush=True)


class Driver:
    """Sends numbered records, and counts those that are neither acknowledged nor failed."""

    def __init__(self, version: str) -> None:
        """Takes the spec from the command line, and prints the library's version."""
        self.spec: dict[str, Any] = json.loads(sys.argv[2])
        report("started", version=version)
        self.tuned = self.spec["Settings"] == "tuned"
        user = self.spec["User"]
        #: The options of kafka-python and aiokafka; librdkafka's names have dots, and no "plain".
        self.connection = {
            "bootstrap_servers": self.spec["Bootstrap"],
            "client_id": user,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": user,
            "sasl_plain_password": user,
        }
        self.ended = False
        self.outstanding = 0  # records that are neither acknowledged nor failed
        self._sent = 0
        self._next = time.time()
        threading.Thread(target=self._wait_for_end, daemon=True).start()

    def _wait_for_end(self) -> None:
        sys.stdin.read()
        self.ended = True

    def due(self) -> bool:
        """Whether a record is to be sent now."""
        return time.time() >= self._next and self.outstanding < self.spec["Outstanding"]

    def next_record(self) -> tuple[int, bytes]:
        """The number and the value of the record that is sent now."""
        number = self._sent
        self._sent += 1
        with _lock:
            self.outstanding += 1
        self._next = max(self._next + 1 / self.spec["Rate"], time.time() - 0.05)
        return number, f"{number:010d}".ljust(_VALUE_BYTES, "x").encode()

    def delivered(self, number: int, error: object = None) -> None:
        """Reports that the record was acknowledged, or that the library gave it up with an error."""
        if error is None:
            report("acked", id=number)
        else:
            report("failed", id=number, error=str(error) or type(error).__name__)
        with _lock:
            self.outstanding -= 1

    def run(self, send: Callable[[int, bytes], None], poll: Callable[[], object] = lambda: None) -> None:
        """Sends until standard input ends, then waits for up to 30 s for the results of all records."""
        while not self.ended:
            poll()
            if not self.due():
                time.sleep(0.001)
                continue
            send(*self.next_record())
        end = time.monotonic() + 30
        while self.outstanding > 0 and time.monotonic() < end:
            poll()
            time.sleep(0.01)
        self.finish()

    def create(self, create: Callable[[], object]) -> None:
        """Calls the library's admin, and prints its result for the new topic."""
        try:
            create()
        except Exception as error:
            report("refused", error=f"{type(error).__name__}: {error}")
        else:
            report("created")
        self.finish()

    def finish(self) -> None:
        """Prints the last line and ends the process, whatever the library still does."""
        report("done", sent=self._sent)
        os._exit(0)


def librdkafka() -> None:
    """Runs the driver with confluent-kafka."""
    from confluent_kafka import Producer, libversion
    from confluent_kafka.admin import AdminClient, NewTopic

    driver = Driver(libversion()[0])
    topic = driver.spec["Topic"]
    config = {name.replace("_plain", "").replace("_", "."): text for name, text in driver.connection.items()}
    if driver.spec["Create"]:
        admin = AdminClient(config)
        driver.create(lambda: admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30))
    producer = Producer(config | ({"enable.idempotence": True} if driver.tuned else {}))

    def send(number: int, value: bytes) -> None:
        producer.produce(topic, value, on_delivery=lambda error, _: driver.delivered(number, error))

    driver.run(send, lambda: producer.poll(0))


def kafka_python() -> None:
    """Runs the driver with kafka-python, version 2 or 3."""
    import kafka
    from kafka.admin import KafkaAdminClient, NewTopic

    driver = Driver(kafka.__version__)
    topic = driver.spec["Topic"]
    # Version 3 has one setting for the time of all retries; version 2 does not retry by default.
    tuned = (
        {"delivery_timeout_ms": 600_000}
        if int(kafka.__version__.split(".")[0]) >= 3
        else {"retries": 1_000_000, "max_in_flight_requests_per_connection": 1, "request_timeout_ms": 600_000}
    )
    if driver.spec["Create"]:
        admin = KafkaAdminClient(**driver.connection)
        driver.create(lambda: admin.create_topics([NewTopic(topic, 1, 1)]))
    producer = kafka.KafkaProducer(acks="all", **driver.connection, **(tuned if driver.tuned else {}))

    def send(number: int, value: bytes) -> None:
        try:
            future = producer.send(topic, value)
        except Exception as error:
            driver.delivered(number, error)
            return
        future.add_callback(lambda _: driver.delivered(number))
        future.add_errback(lambda error: driver.delivered(number, error))

    driver.run(send)


def aiokafka() -> None:
    import aiokafka
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic

    driver = Driver(aiokafka.__version__)
    topic = driver.spec["Topic"]
    tuned = {"enable_idempotence": True, "request_timeout_ms": 600_000}

    async def create() -> None:
        """Creates the topic; if the broker refuses it, only the response has the error, and nothing is raised."""
        admin = AIOKafkaAdminClient(**driver.connection)
        await admin.start()
        await admin.create_topics([NewTopic(topic, 1, 1)])

    async def run() -> None:
        producer = aiokafka.AIOKafkaProducer(acks="all", **driver.connection, **(tuned if driver.tuned else {}))
        await producer.start()
        while not driver.ended:
            if not driver.due():
                await asyncio.sleep(0.001)
                continue
            number, value = driver.next_record()
            try:
                future = await producer.send(topic, value)
            except Exception as error:
                driver.delivered(number, error)
            else:
                future.add_done_callback(lambda done, n=number: driver.delivered(n, done.exception()))
        end = time.monotonic() + 30
        while driver.outstanding > 0 and time.monotonic() < end:
            await asyncio.sleep(0.01)
        driver.finish()

    if driver.spec["Create"]:
        driver.create(lambda: asyncio.run(create()))
    asyncio.run(run())


if __name__ == "__main__":
    {each.__name__: each for each in (librdkafka, kafka_python, aiokafka)}[sys.argv[1]]()
