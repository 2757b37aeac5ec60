"""Every client library meets a PAUSE, a THROTTLE and a refused topic on a real broker.

``make test-clients`` runs these tests, and ``tests.clients.table`` makes the tables of docs/clients.md from their
measurements. A library that this machine can't install is left out, with the reason. All rides of a test send to one
broker at the same time. Each ride is a user of its own, so that the broker mutes no ride because of another one.
"""

import itertools
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Final

import pytest

from harness.kafka.admin import create_topic
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE
from harness.system.waiting import eventually
from tests.broker.support.node import FIXED, callback_node, set_factor
from tests.broker.support.numbers import records
from tests.broker.support.seen import gauge
from tests.clients.libraries import (
    AIOKAFKA,
    DEFAULT,
    KAFKA_GO,
    KAFKAJS,
    LIBRARIES,
    RIDES,
    SARAMA,
    Library,
    Ride,
    Running,
    missing,
    running,
)
from tests.clients.table import Outcome, keep
from tests.skips import COULD_NOT_RUN

pytestmark = pytest.mark.clients

LOADED_S: Final = 20
QUOTA: Final = 500_000
#: The admins of these libraries report no error when the broker refuses a topic: only the response has the error.
SILENT: Final = {AIOKAFKA.name, KAFKA_GO.name}
#: Records until a driver counts as warm. An awaited send, or a small batch, takes milliseconds on an idle machine.
WARM: Final = 200


@contextmanager
def broker(directory: Path, users: Sequence[str]) -> Iterator[KafkaNode]:
    """A broker whose factor tests set by hand; each user's password is its name, and each has a topic."""
    properties = FENCE | {"quota.window.num": "2"}
    logins = {user: user for user in users}
    with callback_node(directory, FIXED | {"static.produce": "50M"}, users=logins, properties=properties) as node:
        for user in users:
            create_topic(node, user)
        yield node


def _logged(node: KafkaNode, state: str) -> float:
    """When the fence last got that state, by the log, in the drivers' ms; on a busy machine JMX is seconds late."""
    line = rf"^\[(.{{23}})\] \w+ The fence is {state}"
    lines: list[str] = eventually(lambda: re.findall(line, node.log_text(), re.MULTILINE))
    return datetime.strptime(lines[-1], "%Y-%m-%d %H:%M:%S,%f").timestamp() * 1000


def runnable() -> list[Library]:
    """The libraries that this machine can install; skips the test if there are none."""
    reasons = {library: missing(library.language) for library in LIBRARIES}
    if all(reasons.values()):
        pytest.skip(f"{COULD_NOT_RUN}{'; '.join(sorted(set(filter(None, reasons.values()))))}")
    return [library for library in LIBRARIES if reasons[library] is None]


def _outcome(node: KafkaNode, ride: Ride, driver: Running, paused: float, released: float) -> Outcome:
    written = [int(value[:10]) for _, value in records(node, ride.topic)]
    failures = sorted(when for when, _ in driver.failed.values() if when > paused)
    return Outcome(
        library=ride.library.name,
        settings=ride.settings,
        version=driver.told["started"]["version"],
        sent=driver.told["done"]["sent"],
        acked=len(driver.acked),
        failed=len(driver.failed),
        lost=len(driver.acked.keys() - set(written)),
        written_though_failed=len(driver.failed.keys() & set(written)),
        duplicates=len(written) - len(set(written)),
        out_of_order=sum(one > other for one, other in itertools.pairwise(written)),
        first_failure=(failures[0] - paused) / 1000 if failures else None,
        back=(driver.acked_after(released)[0] - released) / 1000,
    )


def _ridden(directory: Path, rides: Sequence[Ride], seconds: int) -> dict[Ride, Outcome]:
    """The results of rides that run at the same time on one broker, in a PAUSE."""
    with broker(directory, [ride.topic for ride in rides]) as node, ExitStack() as stack:
        started = {ride: running(node, ride.library, ride.topic, settings=ride.settings) for ride in rides}
        drivers = {ride: stack.enter_context(each) for ride, each in started.items()}
        for ride, driver in drivers.items():
            eventually(lambda d=driver: len(d.acked) >= WARM, 240, f"the client of {ride.topic} sends")
        set_factor(node, 0)
        paused = _logged(node, "closed")
        time.sleep(max(0, paused / 1000 + seconds - time.time()))  # the PAUSE must have this length
        set_factor(node, 1)
        released = _logged(node, "open")
        eventually(lambda: all(driver.acked_after(released) for driver in drivers.values()), 240)
        for driver in drivers.values():
            driver.finish()
        return {ride: _outcome(node, ride, driver, paused, released) for ride, driver in drivers.items()}


@pytest.mark.parametrize("seconds", [60, 20])
@pytest.mark.proves("faults.impatient")
def test_nothing_acknowledged_is_lost_in_a_pause_and_who_gives_up_says_so(tmp_path: Path, seconds: int) -> None:
    libraries = runnable()
    rides = [ride for ride in RIDES if ride.library in libraries]
    # If nobody awaits its sends, kafkajs retries up to 600 times a second on one connection. If 16 other clients share
    # two cores, the answers are so late that kafkajs resends records that may have been written (docs/clients.md).
    alone = [ride for ride in rides if (ride.library, ride.settings) == (KAFKAJS, DEFAULT)]
    outcomes = _ridden(tmp_path / "together", [ride for ride in rides if ride not in alone], seconds)
    if alone:
        outcomes |= _ridden(tmp_path / "alone", alone, seconds)
    keep(f"pause-{seconds}", [asdict(outcome) for outcome in outcomes.values()])
    wrong = []
    for ride, outcome in outcomes.items():
        gives_up = ride.lasts is not None and ride.lasts < seconds
        as_told = (
            outcome.acked + outcome.failed == outcome.sent
            and outcome.lost == outcome.written_though_failed == outcome.duplicates == 0
            and (outcome.failed > 0) == gives_up
            and (not gives_up or (outcome.first_failure or 0) >= (ride.lasts or 0))
            and not (ride.ordered and outcome.out_of_order)
            and outcome.back is not None
            and outcome.back <= ride.back
        )
        if not as_told:
            wrong.append((ride, outcome))
    assert not wrong


def test_in_a_throttle_no_library_sends_more_than_its_limit_allows_or_fails_a_record(tmp_path: Path) -> None:
    libraries = runnable()
    with broker(tmp_path, [f"{library.slug}-default" for library in libraries]) as node, ExitStack() as stack:
        set_factor(node, 0.01)
        eventually(lambda: gauge(node, "QuotaTable", "LimitFactor") == 0.01)
        drivers = [
            stack.enter_context(running(node, library, f"{library.slug}-default", rate=1_000, outstanding=500))
            for library in libraries
        ]
        if SARAMA in libraries:
            eventually(lambda: gauge(node, "ImpatientClients,name=sarama", "Connections") > 0)
        time.sleep(LOADED_S / 2)  # until the windows of Kafka's quotas are full
        begin = 1000 * time.time()
        time.sleep(LOADED_S)
        end = 1000 * time.time()
        for driver in drivers:
            driver.finish()
    rates = {d.library.name: 1000 * sum(begin <= ms < end for ms in d.acked.values()) / LOADED_S for d in drivers}
    keep("throttle", {name: f"{rate / 1000:.0f}" for name, rate in rates.items()})
    assert not any(driver.failed for driver in drivers)
    # On a busy machine a driver may send less than its limit allows.
    assert all(0 < rate <= 1.15 * QUOTA for rate in rates.values()), rates


def test_a_refused_topic_is_an_error_of_all_admins_but_two(tmp_path: Path) -> None:
    libraries = runnable()
    with broker(tmp_path, [f"{library.slug}-default" for library in libraries]) as node:
        set_factor(node, 0)
        said = {}
        for library in libraries:
            with running(node, library, f"refused-by-{library.slug}", create=True) as driver:
                driver.finish()
            said[library.name] = driver.told.get("created") or driver.told["refused"]
    keep("refused", {name: _of_a_refusal(event) for name, event in said.items()})
    assert {name for name, event in said.items() if event["event"] == "created"} == SILENT & said.keys()


def _of_a_refusal(event: dict[str, str]) -> str:
    if event["event"] == "created":
        return "**nothing**: it reports the topic as made"
    return "an error with the sentence" if "quotahost" in event["error"] else "an error without the sentence"
