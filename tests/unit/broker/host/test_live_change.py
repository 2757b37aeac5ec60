"""Changes of properties: built before an administrator hears that they hold, and never in Kafka's way."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from socket import socket
from typing import Any

import pytest

from quotahost.broker.host.broker import ClusterWatch
from quotahost.broker.host.live_change import STAGED_FOR
from quotahost.settings.declaration import PREFIX
from tests.fakes.plugin_context import Clock
from tests.fakes.shim import FakeShim, serve

UNKNOWN = {"static.prodcue": "1M", "plugin.gone.key": "1", "plugin.mine.shrae": "1", "plugin": "1"}


def share(text: str) -> dict[str, str]:
    return {"plugin.mine.share": text}


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


def test_a_change_that_can_not_be_built_is_refused_and_what_was_there_serves_on(mine: Any) -> None:
    shim = FakeShim({"supplier": "mine"})
    shim.arrive(("alice", "a"))
    for ticket, supplier in (("1", "unfit"), ("2", "nobody"), ("3", "static")):
        shim.validate(ticket, supplier=supplier)
    serve(shim)
    assert "'unfit'" in str(shim.verdicts["1"])
    assert "'nobody'" in str(shim.verdicts["2"])
    assert shim.verdicts["3"] is None
    assert shim.rate("alice", "a") == 0.5
    assert mine.CLOSED == ["Unfit", 0.5], "the unfit one at once, the other at the end"


def test_what_was_built_for_the_verdict_is_what_serves_afterwards(mine: Any) -> None:
    shim = FakeShim({"supplier": "mine"})
    shim.arrive(("alice", "a"))
    shim.validate("1", **share("0.25"))
    shim.script.append(lambda: pytest.fail("closed too early") if mine.CLOSED else None)
    shim.reconfigure("2", **share("0.25"))
    serve(shim)
    assert (shim.verdicts, mine.BUILT) == ({"1": None, "2": None}, [0.5, 0.25])
    assert shim.rate("alice", "a") == 0.25
    assert mine.CLOSED == [0.5, 0.25]


def test_what_kafka_does_not_apply_is_closed_after_a_while(mine: Any) -> None:
    clock, closed = Clock(), []
    shim = FakeShim({"supplier": "mine", "tasks": ""})
    shim.validate("1", tasks="idle", **share("0.25"))
    shim.script.append(lambda: setattr(clock, "now", clock.now + STAGED_FOR))
    shim.script.append(lambda: closed.extend(mine.CLOSED))
    shim.script.append(lambda: setattr(clock, "now", clock.now + 1))
    shim.idle()
    shim.script.append(lambda: closed.append([*mine.CLOSED]))
    serve(shim, clock)
    assert closed == [["Task", 0.25]]


def test_another_change_closes_what_was_built_for_the_one_before(mine: Any) -> None:
    shim = FakeShim({"supplier": "mine"})
    shim.validate("1", **share("0.25"))
    shim.validate("2", **share("0.75"))
    shim.reconfigure("3", **share("0.125"))
    serve(shim)
    assert mine.BUILT == [0.5, 0.25, 0.75, 0.125]
    assert mine.CLOSED == [0.25, 0.75, 0.5, 0.125]


def test_the_same_properties_applied_twice_are_taken_over_once(mine: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    shim = FakeShim({"supplier": "mine"})
    for ticket in ("1", "2"):
        shim.reconfigure(ticket, **share("0.25"))
    serve(shim)
    assert shim.verdicts == {"1": None, "2": None}
    assert caplog.text.count("reconfigured") == 1


def test_a_name_that_is_stored_alone_is_named_once(
    mine: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = FakeShim({"supplier": "mine"})
    stored = tuple(PREFIX + name for name in (*UNKNOWN, "static.produce", "plugin.mine.share", "kafka.group.id"))
    # The broker answers ten seconds after its start, which no test waits for; here it does in each round.
    monkeypatch.setattr(ClusterWatch, "hand_on", lambda _look, _cluster, hear: hear(stored))
    shim.idle(2)
    serve(shim)
    named = errors(caplog)
    assert len(named) == len(UNKNOWN)
    assert all(PREFIX + name.removesuffix("key") in " ".join(named) for name in UNKNOWN)


def test_an_unknown_name_stops_the_start_of_a_broker_and_no_later_start_of_the_host(mine: Any) -> None:
    given = {"supplier": "mine", **UNKNOWN}
    assert "prodcue" in str(serve(FakeShim(given)).refused)
    assert mine.BUILT == []
    later = FakeShim(given, second_life=True)
    later.arrive(("alice", "a"))
    assert serve(later).refused is None
    assert later.rate("alice", "a") == 0.5


def test_a_wrong_value_beside_an_unknown_name_is_refused_by_the_value_alone(mine: Any) -> None:
    shim = FakeShim({"supplier": "mine"})
    shim.validate("1", **UNKNOWN, **share("much"))
    serve(shim)
    assert "plugin.mine.share=much" in str(shim.verdicts["1"])
    assert "prodcue" not in str(shim.verdicts["1"])


@pytest.mark.parametrize(
    ("given", "named", "closed"),
    [
        ({"supplier": "mine,disky", "tasks": "idle"}, "metrics.port=", ["Task", "Disky", 0.5]),
        ({"supplier": "disky,unfit"}, "'unfit'", ["Unfit", "Disky"]),
    ],
    ids=["its port is taken", "a later plugin can not be built"],
)
def test_a_refused_start_leaves_no_plugin_open_and_no_thread_behind(
    mine: Any, tmp_path: Path, given: dict[str, str], named: str, closed: list[Any]
) -> None:
    with socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = {"metrics.port": str(taken.getsockname()[1])}
        shim = serve(FakeShim(given | port, {"node.id": "1", "log.dirs": str(tmp_path)}))
    assert named in str(shim.refused)
    assert closed == mine.CLOSED
    assert "quotahost-disks" not in [thread.name for thread in threading.enumerate()]


def test_the_properties_of_a_plugin_that_a_change_has_brought_are_live_too(mine: Any) -> None:
    shim = FakeShim({"supplier": "static"})
    shim.reconfigure("1", supplier="mine")
    serve(shim)
    assert PREFIX + "plugin.mine.share" in shim.live
