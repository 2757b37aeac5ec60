"""Every client library through a PAUSE, a THROTTLE and a refused topic, on a real broker.

``make test-clients`` runs this, and ``tests.clients.table`` makes the tables of docs/clients.md of what is measured
here. A library that this machine can't install is left out, with the reason.
"""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from harness.system.waiting import eventually
from tests.broker.support.seen import gauge
from tests.clients.libraries import AIOKAFKA, KAFKA_GO, LIBRARIES, SARAMA, Running, now_ms
from tests.clients.rides import RIDES, broker, runnable, set_factor, through_a_pause
from tests.clients.table import Told, keep

pytestmark = pytest.mark.clients

LOADED_S: Final = 20
QUOTA: Final = 500_000
#: Their admins say that a topic was made although the broker has refused it: the error stands in the response alone.
SILENT: Final = {AIOKAFKA.name, KAFKA_GO.name}


@pytest.mark.parametrize("seconds", [60, 20])
@pytest.mark.proves("faults.impatient")
def test_nothing_acknowledged_is_lost_in_a_pause_and_who_gives_up_says_so(tmp_path: Path, seconds: int) -> None:
    outcomes = through_a_pause(tmp_path, RIDES, seconds)
    keep(f"pause-{seconds}", list(outcomes.values()))
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
    libraries = runnable(LIBRARIES)
    with broker(tmp_path, [f"{library.slug}-default" for library in libraries]) as node, ExitStack() as stack:
        set_factor(node, 0.01)
        running = [
            stack.enter_context(Running.start(node, library, f"{library.slug}-default", rate=1_000, outstanding=500))
            for library in libraries
        ]
        if SARAMA in libraries:
            eventually(lambda: gauge(node, "ImpatientClients,name=sarama", "Connections") > 0)
        time.sleep(LOADED_S / 2)  # the windows of Kafka's quotas are full
        begin = now_ms()
        time.sleep(LOADED_S)
        end = now_ms()
        for driver in running:
            driver.finish()
    rates = {d.library.name: 1000 * sum(begin <= ms < end for ms in d.acked.values()) / LOADED_S for d in running}
    keep("throttle", [Told(name, f"{rate / 1000:.0f}") for name, rate in rates.items()])
    assert not any(driver.failed for driver in running)
    # On a busy machine a driver may send less than its limit allows.
    assert all(0 < rate <= 1.15 * QUOTA for rate in rates.values()), rates


def test_a_refused_topic_is_an_error_of_all_admins_but_two(tmp_path: Path) -> None:
    libraries = runnable(LIBRARIES)
    with broker(tmp_path, [f"{library.slug}-default" for library in libraries]) as node:
        set_factor(node, 0)
        said = {}
        for library in libraries:
            with Running.start(node, library, f"refused-by-{library.slug}", create=True) as driver:
                driver.finish()
            said[library.name] = driver.admin
    keep("refused", [Told(name, _of_a_refusal(event)) for name, event in said.items()])
    assert {name for name, event in said.items() if event["event"] == "created"} == SILENT & said.keys()


def _of_a_refusal(event: dict[str, str]) -> str:
    if event["event"] == "created":
        return "**nothing**: it reports the topic as made"
    return "an error with the sentence" if "quotahost" in event["error"] else "an error without the sentence"
