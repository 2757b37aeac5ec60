"""Rides of client libraries through a PAUSE: which there are, what each must come through, and what came of it.

A ride is one library with one choice of settings. All rides of a test send at once to one broker, each as a user of its
own, so that none is muted for what another one sends. ``through_a_pause`` starts them, closes the fence, opens it
again, ends them, and then reads all that is in their topics.
"""

import itertools
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import pytest

from harness.kafka.admin import alter_broker_config, create_topic
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE
from harness.system.waiting import eventually
from tests.broker.support.node import FACTOR, FIXED, callback_node
from tests.broker.support.numbers import records
from tests.broker.support.seen import gauge
from tests.clients.libraries import (
    AIOKAFKA,
    AWAITED,
    DEFAULT,
    FRANZ_GO,
    JAVA,
    KAFKA_GO,
    KAFKA_PYTHON_2,
    KAFKA_PYTHON_3,
    KAFKAJS,
    LIBRDKAFKA,
    SARAMA,
    TUNED,
    Library,
    Running,
    missing,
)
from tests.skips import COULD_NOT_RUN

#: An awaited send, or a small batch, is acknowledged within milliseconds; the rest is the machine.
_WARM: Final = 200


@dataclass(frozen=True, slots=True)
class Ride:
    """One library with one choice of settings."""

    library: Library  # the library
    settings: str  # DEFAULT, TUNED or AWAITED
    words: str  # the settings as a user writes them
    lasts: float | None  # for how many seconds of a PAUSE no record is given up; None for 60 and more
    back: float  # within how many seconds after the release the first record is acknowledged
    ordered: bool  # whether the records are in the topic in the order in which they were sent
    sees: str  # what the application sees of a PAUSE

    @property
    def topic(self) -> str:
        """The topic, which is also the user."""
        return f"{self.library.slug}-{self.settings}"


RIDES: Final = (
    Ride(JAVA, DEFAULT, "default", None, 5, True, "nothing"),
    Ride(LIBRDKAFKA, DEFAULT, "default", None, 5, False, "nothing"),
    Ride(LIBRDKAFKA, TUNED, "`enable.idempotence=true`", None, 5, True, "nothing"),
    Ride(FRANZ_GO, DEFAULT, "default", None, 10, True, "nothing"),
    Ride(FRANZ_GO, TUNED, "`MetadataMinAge(time.Second)`", None, 5, True, "nothing"),
    Ride(KAFKA_PYTHON_3, DEFAULT, "default", None, 5, True, "lines in its log"),
    Ride(KAFKA_PYTHON_2, DEFAULT, "default", 0, 5, False, "NotEnoughReplicasError for each record"),
    Ride(
        KAFKA_PYTHON_2, TUNED,
        "`retries=1_000_000`, `max_in_flight_requests_per_connection=1`, `request_timeout_ms=600_000`",
        None, 5, True, "lines in its log",
    ),
    Ride(AIOKAFKA, DEFAULT, "default", 30, 5, False, "`send()` blocks, then errors"),
    Ride(AIOKAFKA, TUNED, "`enable_idempotence=True`, `request_timeout_ms=600_000`", None, 5, True, "`send()` blocks"),
    Ride(SARAMA, DEFAULT, "default", 0, 5, False, "an error for each record"),
    Ride(
        SARAMA, TUNED,
        "`Producer.Idempotent`, `Net.MaxOpenRequests=1`, `Producer.Retry.Max=10_000`, `Producer.Retry.BackoffFunc` of "
        "at most 1 s",
        None, 5, True, "nothing",
    ),
    Ride(KAFKA_GO, DEFAULT, "default", 5, 5, False, "error 19, NotEnoughReplicas"),
    Ride(
        KAFKA_GO, TUNED, "`MaxAttempts=1_000`, `WriteBackoffMin=250ms`, `WriteBackoffMax=1s`", None, 5, True, "nothing",
    ),
    Ride(KAFKAJS, DEFAULT, "default, `send` not awaited", 5, 10, False, "NumberOfRetriesExceeded"),
    Ride(KAFKAJS, AWAITED, "default, each `send` awaited", 5, 10, True, "NumberOfRetriesExceeded"),
    Ride(
        KAFKAJS, TUNED,
        "`idempotent`, `maxInFlightRequests: 1`, `retry: {maxRetryTime: 2000, retries: 1_000_000}`, each `send` "
        "awaited",
        None, 5, True, "`send` takes as long as the PAUSE",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a ride through a PAUSE; times are in seconds."""

    library: str
    settings: str
    version: str
    sent: int
    acked: int
    failed: int
    lost: int  # acknowledged, and not in the topic
    written_though_failed: int
    duplicates: int
    out_of_order: int
    first_failure: float | None  # after the PAUSE began
    back: float | None  # after it ended


@contextmanager
def broker(directory: Path, users: Sequence[str]) -> Iterator[KafkaNode]:
    """A broker whose factor tests set by hand; each user's password is its name, and each has a topic."""
    properties = FENCE | {"quota.window.num": "2"}
    logins = {user: user for user in users}
    with callback_node(directory, FIXED | {"static.produce": "50M"}, users=logins, properties=properties) as node:
        for user in users:
            create_topic(node, user)
        yield node


def set_factor(node: KafkaNode, factor: float) -> None:
    """Sets the factor, and waits until it is in force."""
    alter_broker_config(node, {FACTOR: f"{factor:g}"})
    eventually(lambda: gauge(node, "QuotaTable", "LimitFactor" if factor else "Factor") == factor, poll=0.02)
    eventually(lambda: gauge(node, "Fence", "Closed") == (factor == 0), poll=0.02)


def _logged(node: KafkaNode, state: str) -> float:
    """When the fence was in that state last, in the drivers' ms: on a busy machine JMX tells it seconds later."""
    *_, last = re.findall(rf"^\[(.{{23}})\] \w+ The fence is {state}", node.log_text(), re.MULTILINE)
    return datetime.strptime(last, "%Y-%m-%d %H:%M:%S,%f").timestamp() * 1000


def runnable(libraries: Sequence[Library]) -> list[Library]:
    """Those that this machine can install; the test is skipped where it can install none."""
    reasons = {library: missing(library.language) for library in libraries}
    if all(reasons.values()):
        pytest.skip(f"{COULD_NOT_RUN}{'; '.join(sorted(set(filter(None, reasons.values()))))}")
    return [library for library in libraries if reasons[library] is None]


def through_a_pause(directory: Path, rides: Sequence[Ride], seconds: float) -> dict[Ride, Outcome]:
    """Has all rides send through one PAUSE; those that this machine can't install are left out."""
    libraries = runnable(list(dict.fromkeys(ride.library for ride in rides)))
    rides = [ride for ride in rides if ride.library in libraries]
    with broker(directory, [ride.topic for ride in rides]) as node, ExitStack() as stack:
        running = {
            ride: stack.enter_context(Running.start(node, ride.library, ride.topic, settings=ride.settings))
            for ride in rides
        }
        for driver in running.values():
            eventually(lambda d=driver: len(d.acked) >= _WARM, 240, f"{driver.name} sends")
        set_factor(node, 0)
        paused = _logged(node, "closed")
        time.sleep(max(0, paused / 1000 + seconds - time.time()))  # the time is what is measured
        set_factor(node, 1)
        released = _logged(node, "open")
        eventually(lambda: all(driver.acked_after(released) for driver in running.values()), 240)
        for driver in running.values():
            driver.finish()
        return {ride: _outcome(node, ride, driver, paused, released) for ride, driver in running.items()}


def _outcome(node: KafkaNode, ride: Ride, driver: Running, paused: float, released: float) -> Outcome:
    written = [int(value[:10]) for _, value in records(node, ride.topic)]
    failures = driver.failed_after(paused)
    return Outcome(
        library=ride.library.name,
        settings=ride.settings,
        version=driver.version,
        sent=driver.done["sent"],
        acked=len(driver.acked),
        failed=len(driver.failed),
        lost=len(driver.acked.keys() - set(written)),
        written_though_failed=len(driver.failed.keys() & set(written)),
        duplicates=len(written) - len(set(written)),
        out_of_order=sum(one > other for one, other in itertools.pairwise(written)),
        first_failure=(failures[0] - paused) / 1000 if failures else None,
        back=(driver.acked_after(released)[0] - released) / 1000,
    )
