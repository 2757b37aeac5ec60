"""The driver of aiokafka."""

from __future__ import annotations

import asyncio
import time

import aiokafka
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from driver import Driver, report

driver = Driver(aiokafka.__version__)
spec = driver.spec
CONFIG = {
    "bootstrap_servers": spec["Bootstrap"],
    "client_id": spec["User"],
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": spec["User"],
    "sasl_plain_password": spec["User"],
}
TUNED = {"enable_idempotence": True, "request_timeout_ms": 600_000}


async def run() -> None:
    producer = AIOKafkaProducer(acks="all", **CONFIG, **(TUNED if driver.tuned else {}))
    await producer.start()
    while not driver.ended:
        if not driver.due():
            await asyncio.sleep(0.001)
            continue
        number, value = driver.next_record()
        try:
            future = await producer.send(spec["Topic"], value)
        except Exception as error:
            driver.delivered(number, error)
        else:
            future.add_done_callback(lambda done, n=number: driver.delivered(n, done.exception()))
    end = time.monotonic() + 30
    while driver.outstanding > 0 and time.monotonic() < end:
        await asyncio.sleep(0.01)
    driver.finish()


async def create() -> None:
    """A refused topic is no exception: it stands in the response alone."""
    admin = AIOKafkaAdminClient(**CONFIG)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(spec["Topic"], 1, 1)])
        report("created")
    except Exception as error:
        report("refused", error=f"{type(error).__name__}: {error}")
    driver.finish()


asyncio.run(create() if spec["Create"] else run())
