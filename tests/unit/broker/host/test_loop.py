"""Tests the host with a scripted shim and real plugins: the answers in the table, and live changes."""

import faulthandler
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from socket import socket
from typing import Any

import pytest
from pydantic import create_model

from harness.system.waiting import eventually
from quotahost.broker.disks.monitor import DiskMonitor
from quotahost.broker.host import stacks
from quotahost.broker.host.factor import PauseMemory
from quotahost.broker.host.live_change import STAGED_FOR
from quotahost.broker.host.logs import Logs
from quotahost.broker.host.loop import Host
from quotahost.broker.host.messages import Batch, Event
from quotahost.model import Client
from quotahost.settings.declaration import PREFIX
from tests.fakes.plugin_context import Clock, fails
from tests.fakes.shim import FakeShim, node_of, serve


def test_a_supplier_that_a_change_brings_hears_all_quotas_and_its_properties_are_live(mine: Any) -> None:
    shim, rates = FakeShim({"supplier": "static"}), list[float | None]()
    shim.post("client-quota", "PRODUCE", "name", "alice", "", "", "9.0")
    shim.arrive(("alice", "a"))
    for name in ("mine", "client-quotas", "mine"):
        shim.reconfigure(supplier=name)
        shim.idle()
        shim.script.append(lambda: rates.append(shim.rate("alice", "a")))
    serve(shim)
    assert (rates, mine.CLOSED) == ([0.5, 9.0, 0.5], [0.5, 0.5])
    assert PREFIX + "plugin.mine.share" in shim.asked


@pytest.mark.parametrize(
    ("given", "has_fence", "times"),
    [
        ({"factor.source": "fixed"}, False, 1),
        ({"factor.source": "fixed"}, True, 0),
        ({"factor.source": "fixed", "shadow": "all"}, False, 0),
        ({"factor.source": "fixed", "shadow": "factor"}, False, 0),
        ({"topics.total.bytes.in.per.sec.threshold": "1G"}, False, 1),
        ({}, False, 0),
    ],
)
def test_a_pause_that_no_fence_can_hold_is_warned_of_once_soon_after_the_start(
    caplog: pytest.LogCaptureFixture, given: dict[str, str], has_fence: bool, times: int
) -> None:
    shim = FakeShim({"supplier": "static", **given}, pace=1)
    shim.told["starting"] = lambda: setattr(shim.clock, "now", shim.clock.now + 20)  # plugins start slowly
    shim.passes(40)  # a broker creates its authorizer, and so the fence, after its callback, on a busy machine late
    shim.idle()
    shim.script.append(lambda: setattr(shim, "has_fence", has_fence))
    shim.post("cluster", "the-cluster", "1")
    shim.idle(2)
    serve(shim)
    assert caplog.text.count("QuotaFence") == times


def test_the_plugins_share_one_monitor_of_the_disks_and_nothing_outlives_the_host(mine: Any, tmp_path: Path) -> None:
    mine.SEEN["ran"] = threading.Event()
    given = {"factor.source": "disky", "tasks": "disky", "factor.interval": "100ms", "shadow": "factor"}
    before = set(threading.enumerate())
    shim = FakeShim(given, {"node.id": "1", "log.dirs": str(tmp_path)}, second_life=True, pace=1)
    (tmp_path / "meta.properties").touch()
    shim.gauge("Volume", "/lost", "Consumed", 7.0)  # left behind by a host that was killed
    shim.gauge("Connection", "snapshots", "Connected", 1.0)  # left behind by that host's standby
    shim.script.append(lambda: mine.SEEN["ran"].wait(60) and None)
    shim.reconfigure(**{"static.storage.overrides": f"{tmp_path} hard=5", "volumes.period": "1s"})
    serve(shim)
    assert [volume.broker for volume in mine.SEEN["volumes"]] == ["1"]
    assert len(mine.SEEN["looking"] - before) == 1
    shown = {(type, name) for type, name, _ in shim.shown if type in ("Volume", "Connection")}
    assert len(shown - {("Volume", "/lost"), ("Connection", "snapshots")}) == len(shown) == 1
    eventually(lambda: not set(threading.enumerate()) - before)


def test_the_next_start_knows_of_a_pause_also_by_a_source_that_looks_at_no_disk_of_this_broker(tmp_path: Path) -> None:
    given = {"factor.source": "fixed", "plugin.fixed.factor": "0", "volumes.period": "100ms"}
    shim = FakeShim(given, {"node.id": "1", "log.dirs": str(tmp_path)}, pace=1)
    shim.idle()
    serve(shim)
    eventually(lambda: PauseMemory([str(tmp_path)]).before)


PAUSE = '[{"factor": {"value": 0, "cause": "broker 1, volume /d"}, "affected": null, "full": true}, []]'


@pytest.mark.parametrize("stops", [PAUSE, '[null, [{"name": "orders", "factor": 0, "topics": ["orders"]}]]'])
def test_a_broker_that_starts_without_a_factor_source_forgets_whom_it_stopped(tmp_path: Path, stops: str) -> None:
    (file := tmp_path / PauseMemory.FILE).write_text(stops)
    shim = FakeShim({"supplier": "static"}, {"node.id": "1", "log.dirs": str(tmp_path)}, pace=1)
    shim.idle()
    serve(shim)
    eventually(lambda: not file.exists())


@pytest.mark.parametrize(
    ("second_life", "in_jvm", "dumps"), [(False, True, True), (True, False, True), (True, True, False)]
)
def test_a_plugin_that_hangs_at_the_start_has_its_stack_told_but_a_broker_that_serves_risks_no_dump(
    mine: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, second_life: bool, in_jvm: bool,
    dumps: bool,
) -> None:  # fmt: skip
    """A dump without the interpreter's lock may crash this process, so none is made here."""
    armed, due = list[bool](), list[float]()
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda after, **_: due.append(after))
    monkeypatch.setattr(faulthandler, "cancel_dump_traceback_later", due.clear)
    monkeypatch.setattr(mine.Source, "__init__", lambda _source, context: armed.append(bool(due)))
    monkeypatch.setattr(stacks, "_LOOK", 0.01)

    def hangs(_source: object) -> float:
        armed.append(bool(due))
        return eventually(lambda: float("in hangs" in caplog.text), timeout=20)

    monkeypatch.setattr(mine.Source, "read", hangs)
    shim = FakeShim({"factor.source": "disks", "validity": "1s", "factor.interval": "100ms"}, second_life=second_life)
    Host(shim, shim.clock, in_jvm=in_jvm).run()
    assert shim.failed == []
    assert armed == [dumps] * 2


def test_a_shorter_volumes_period_counts_at_once(mine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = threading.Semaphore(0)
    monkeypatch.setattr(DiskMonitor, "look", lambda _monitor: looks.release())
    given = {"factor.source": "disky", "volumes.period": "1h"}
    shim = FakeShim(given, {"node.id": "1", "log.dirs": str(tmp_path)}, pace=1)
    shim.reconfigure(**{"volumes.period": "1ms"})
    looked: list[bool] = []
    shim.script.append(lambda: looked.extend(looks.acquire(timeout=20) for _ in range(5)))
    serve(shim)
    assert all(looked), "the new period applies immediately, so the disks don't become unknown"


def test_new_limits_slow_only_those_who_fill_the_volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look, soon = DiskMonitor.look, threading.Event()
    monkeypatch.setattr(DiskMonitor, "look", lambda monitor: (soon.wait(0.05), look(monitor)))
    (tmp_path / "orders-0").mkdir()
    given = {"factor.scope": "topics", "static.storage.soft": "1000T"}
    shim = FakeShim(given, {"node.id": "1", "log.dirs": str(tmp_path)}, has_fence=True, pace=1)
    shim.reconfigure(**{"static.storage.soft": "1"})
    shim.idle()
    serve(shim)
    assert [whom and list(whom.places) for whom in shim.affected] == [["orders"]]


def test_an_event_that_cannot_be_handled_costs_nothing_but_itself(caplog: pytest.LogCaptureFixture) -> None:
    shim = FakeShim({"static.produce": "5M"})
    good = "cluster", ("id-1", "1", "2")
    shim.script.append(Batch([Client("alice", "app")], [Event("client-quota", ("NO_TYPE",)), Event(*good)]))
    shim.script.append(Batch([], [Event("validate", ("7", "odd"))]))
    serve(shim)
    assert shim.rate("alice", "app") == 5_000_000
    assert shim.shown["Host", "", "EventErrors"] == 2
    assert "the host failed at the change" in shim.answered["7"]
    assert sum("can't be handled" in each.getMessage() for each in caplog.records) == 1  # logged once, not in a flood


def leaves(*_: Any) -> Any:
    raise SystemExit("a plugin's, not the host's")


@pytest.fixture
def fault_handler(tmp_path: Path) -> Iterator[Callable[[], None]]:
    """A function that enables Python's faulthandler, as a plugin may do."""
    with (tmp_path / "faults").open("w") as file:
        yield lambda: faulthandler.enable(file)
        faulthandler.disable()


def test_a_faulthandler_that_a_plugin_enables_is_disabled_again_with_one_line(
    mine: Any, fault_handler: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    mine.Supplier.__init__ = lambda self, context: fault_handler()
    shim, enabled = FakeShim({"supplier": "mine"}, pace=2), list[bool]()
    for _ in range(3):
        shim.script.append(lambda: enabled.append(faulthandler.is_enabled()))
        shim.script.append(fault_handler)
    serve(shim)
    assert enabled == [False] * 3
    assert caplog.text.count("a plugin enabled Python's faulthandler, and quotahost disabled it again") == 1


def test_a_supplier_ticks_once_a_second_and_its_failure_is_its_own(mine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shim = FakeShim({"supplier": "mine"}, clock=Clock(0.0), pace=0.25)
    ticks, again = list[float](), list[tuple[float, str]]()
    mine.Supplier.tick = lambda supplier: [
        ticks.append(shim.clock.now), len(ticks) == 2 and leaves(), supplier.context.answers_changed("alice")
    ]  # fmt: skip
    monkeypatch.setattr(shim, "ask_again", lambda principal, _: again.append((shim.clock.now, principal)))
    shim.idle(15)
    serve(shim)
    # At 0.25 the host asks for all clients again anyway, and at 1.25 the supplier fails.
    assert [at for at, principal in again if principal == "alice"] == [2.25, 3.25]
    assert (ticks, shim.failed) == ([0.25, 1.25, 2.25, 3.25], ["mine"])


# ---- live changes: the host builds the plugins before its verdict, and Kafka waits for nothing else ----


def share(text: str) -> dict[str, str]:
    return {"plugin.mine.share": text}


def test_what_was_built_for_a_verdict_serves_unless_another_comes(mine: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    shim = FakeShim({"supplier": "mine"})
    shim.arrive(("alice", "a"))
    shim.validate("1", **share("0.25"))
    shim.validate("2", **share("0.75"))
    shim.script.append(lambda: pytest.fail("the plugin is closed too early") if 0.5 in mine.CLOSED else None)
    for _ in range(2):  # a node that is broker and controller has two callbacks
        shim.reconfigure(**share("0.75"))
    shim.validate("3", **share("0.25"))
    shim.reconfigure(**share("0.125"))
    serve(shim)
    assert mine.BUILT == [0.5, 0.25, 0.75, 0.25, 0.125]
    assert mine.CLOSED == [0.25, 0.5, 0.25, 0.75, 0.125]
    assert shim.in_force == [shim.given, shim.given | share("0.75"), shim.given | share("0.125")]
    assert (shim.answered, shim.rate("alice", "a")) == (dict.fromkeys("123", ""), 0.125)
    assert caplog.text.count("reconfigured: client.quota.callback.plugin.mine.share") == 2


def test_no_line_of_a_plugin_that_is_built_or_closed_shows_its_secrets(mine: Any) -> None:
    def built(supplier: Any, context: Any) -> None:
        supplier.share = context.section.share
        context.log.warning("%s is refused", context.section.password)

    mine.Supplier.Section = create_model("Section", share=(float, 0.5), password=(str, ""))
    mine.Supplier.__init__ = built
    shim = FakeShim({"supplier": "mine", "plugin.mine.password": "hunter2"})
    shim.validate("1", **{"plugin.mine.password": "hunter3"})
    mine.Supplier.close = lambda supplier: logging.getLogger("mine").warning("hunter2 is refused")
    shim.reconfigure(**{"plugin.mine.password": "hunter3"})
    with Logs(shim) as logs:
        Host(shim, shim.clock, logs=logs).run()
    assert [line for line in shim.lines if "is refused" in line][:3] == ["*** is refused"] * 3


def test_no_line_shows_the_login_that_the_broker_has_from_a_change_on(mine: Any) -> None:
    def told(supplier: Any) -> None:
        supplier.context.log.warning("%s is refused", supplier.context.broker.client_config()["sasl.password"])

    shim = FakeShim({"supplier": "mine"}, node_of(1, "kafka"), pace=1)
    shim.idle()
    shim.script.append(
        lambda: shim.node.update({n: f"{t} password=hunter2;" for n, t in shim.node.items() if "jaas" in n})
    )
    shim.reconfigure()
    shim.script.append(lambda: setattr(mine.Supplier, "tick", told))
    shim.idle(2)
    with Logs(shim) as logs:
        Host(shim, shim.clock, logs=logs).run()
    assert {line for line in shim.lines if "is refused" in line} == {"*** is refused"}


def test_a_plugin_in_the_place_of_one_that_failed_is_heard_of_when_it_fails_too(
    mine: Any, caplog: pytest.LogCaptureFixture
) -> None:
    mine.Supplier.tick = fails
    shim = FakeShim({"supplier": "mine"}, pace=1)
    shim.idle(3)
    shim.reconfigure(**share("0.25"))
    shim.idle(3)
    serve(shim)
    assert caplog.text.count("plugin mine failed in tick()") == 2, "an administrator looks there after a change"


def test_what_kafka_does_not_apply_is_closed_after_a_while(mine: Any) -> None:
    shim, closed = FakeShim({"supplier": "mine", "tasks": ""}), []
    shim.validate("1", tasks="idle", **share("0.25"))
    for seconds in (STAGED_FOR, 1):
        shim.passes(seconds)
        shim.idle()
        shim.script.append(lambda: closed.append([*mine.CLOSED]))
    serve(shim)
    assert closed == [[], ["Task", 0.25]]


def test_a_change_taken_by_half_ends_the_host_with_no_plugin_open(mine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shim, problems = FakeShim({"supplier": "mine", "tasks": "idle"}), [None, ConnectionError("OutOfMemoryError")]

    def configure(*_: Any) -> None:
        if problem := problems.pop(0):
            raise problem

    monkeypatch.setattr(FakeShim, "configure", configure)
    shim.reconfigure(supplier="mine,disky", **share("0.25"))
    shim.idle()
    with pytest.raises(ConnectionError):
        serve(shim)
    assert (len(shim.script), shim.shown["Host", "", "ConfigRefused"]) == (1, 1.0)
    assert shim.in_force == [shim.given], "the next host starts with the former properties"
    eventually(lambda: sorted(map(str, mine.CLOSED)) == ["0.25", "0.5", "Disky", "Task"])


def test_exemptions_taken_by_half_end_the_host_too(mine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shim, broken = FakeShim({"supplier": "mine"}, node_of(1, "ANONYMOUS")), list[bool]()
    monkeypatch.setattr(FakeShim, "spare", lambda *_: broken and fails())
    shim.script.append(lambda: broken.append(True))
    shim.post("cluster", "id-1", "1", "2")
    with pytest.raises(RuntimeError):
        serve(shim)
    assert mine.CLOSED == [0.5]


@pytest.fixture
def taken() -> Iterator[dict[str, str]]:
    """A port for metrics at which another socket listens."""
    with socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield {"metrics.port": str(listening.getsockname()[1])}


@pytest.mark.parametrize(
    ("given", "named", "closed"),
    [
        ({"supplier": "mine,disky", "tasks": "idle"}, "metrics.port=", ["Task", "Disky", 0.5]),
        ({"supplier": "disky,unfit"}, "'unfit'", ["Unfit", "Disky"]),
    ],
    ids=["the port is taken", "a later plugin can't be built"],
)
def test_a_refused_start_leaves_no_plugin_open_and_no_thread_behind(
    mine: Any, tmp_path: Path, taken: dict[str, str], given: dict[str, str], named: str, closed: list[Any]
) -> None:
    before = set(threading.enumerate())
    shim = serve(FakeShim(taken | given, {"node.id": "1", "log.dirs": str(tmp_path)}))
    assert named in str(shim.refused)
    assert closed == mine.CLOSED
    eventually(lambda: not set(threading.enumerate()) - before)


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0..0"])
def test_a_host_that_starts_again_serves_without_metrics_where_their_port_is_taken_or_at_no_host(
    mine: Any, taken: dict[str, str], caplog: pytest.LogCaptureFixture, address: str
) -> None:
    port = f"{address}:{taken['metrics.port']}"
    shim = FakeShim({"supplier": "mine", **share("0.25"), "metrics.port": port}, second_life=True)
    shim.arrive(("alice", "a"))
    assert serve(shim).refused is None
    assert shim.rate("alice", "a") == 0.25
    (error,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert f"metrics.port={taken['metrics.port']}: {address} can't be bound" in error
