"""The driver of aiokafka."""

from __future__ import annotations

import asyncio
import time

import aiokafka
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from driver import Driver, created

driver = Driver(aiokafka.__version__)
spec = driver.spec
TUNED = {"enable_idempotence": True, "request_timeout_ms": 600_000}


async def run() -> None:
    producer = AIOKafkaProducer(acks="all", **driver.connection, **(TUNED if driver.tuned else {}))
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
    admin = AIOKafkaAdminClient(**driver.connection)
    await admin.start()
    await admin.create_topics([NewTopic(spec["Topic"], 1, 1)])


if spec["Create"]:
    created(lambda: asyncio.run(create()))
asyncio.run(run())
