"""The host between a scripted shim and real plugins: what ends in the table, and when."""

from __future__ import annotations

import faulthandler
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from quotahost.broker.host.exemptions import INTERNAL_CLIENT_IDS
from quotahost.broker.host.loop import Host
from quotahost.broker.host.messages import EXEMPT, NEWCOMER, Batch, Event
from quotahost.broker.host.new_clients import RETRY
from quotahost.model import Client
from tests.fakes.packages import distribute
from tests.fakes.plugin_context import Clock
from tests.fakes.shim import FakeShim, node_of

PLUGINS = """
    import threading
    from datetime import timedelta
    from pydantic import BaseModel, field_validator
    from quotahost.model import Factor, Quota, Scope, Volume, ClusterVolumes

    STATE = {}

    class Base:
        def __init__(self, context):
            self.context = context
            STATE.setdefault("built", []).append(context.name)
        def close(self):
            STATE.setdefault("closed", []).append(self.context.name)

    class Supplier(Base):
        def quota(self, client, quota_type):
            answer = STATE.get("answer", Quota(5.0))
            return answer(client) if callable(answer) else answer

    class Source(Base):
        def read(self):
            answer = STATE.get("factor")
            return answer() if callable(answer) else answer

    class Policy(Base):
        def quota_factor(self, volume):
            return 1 - volume.consumed / volume.capacity

    class Checked(Base):
        class Section(BaseModel):
            share: float = 0.5

            @field_validator("share")
            @classmethod
            def count(cls, value):
                STATE.setdefault("validated", []).append(value)
                return value
        def quota(self, client, quota_type):
            return Quota(self.context.section.share)

    class Adaptable(Checked):
        def reconfigure(self, section):
            STATE["reconfigured"] = section.share
        def quota(self, client, quota_type):
            return None

    class Disky(Base):
        def __init__(self, context):
            super().__init__(context)
            self.disks = context.disks
        def read(self):
            STATE["volumes"] = self.disks.known().volumes
            STATE["looking"] = [t.name for t in threading.enumerate()].count("quotahost-disks")
            return Factor(1.0)
        def run(self):
            assert self.disks.latest()[1] is not None
            STATE["ran"].set()
        period = timedelta(hours=1)

    class Task(Base):
        period = timedelta(hours=1)
        def run(self):
            STATE["ran"].set()
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    groups = {
        "quotahost.suppliers": {"mine": "mine:Supplier", "checked": "mine:Checked", "adaptable": "mine:Adaptable"},
        "quotahost.factor_sources": {"mine": "mine:Source", "disky": "mine:Disky"},
        "quotahost.policies": {"mine": "mine:Policy"},
        "quotahost.tasks": {"mine": "mine:Task", "disky": "mine:Disky"},
    }
    distribute(tmp_path, "mine", groups, {"mine": PLUGINS})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "mine", raising=False)
    module = __import__("mine")
    made: dict[str, Any] = module.STATE
    return made


def run(shim: FakeShim, clock: Clock | None = None) -> FakeShim:
    Host(shim, clock or Clock()).run()
    return shim


@pytest.mark.proves("proposal-035.supplier")
def test_the_first_supplier_that_answers_gives_the_quota() -> None:
    shim = FakeShim({"supplier": "client-quotas,static", "static.produce": "2M"})
    shim.post("client-quota", "PRODUCE", "name", "alice", "", "", "7000000.0")
    shim.arrive(("alice", "a"), ("bob", "b"))
    run(shim)
    assert shim.rate("alice", "a") == 7e6
    assert shim.rate("bob", "b") == 2e6
    assert shim.rate("bob", "b", quota_type=1) is None


def test_a_wrong_property_or_plugin_is_refused_and_nothing_serves() -> None:
    for given in ({"static.produce": "fast"}, {"supplier": "nobody"}):
        shim = FakeShim(given)
        shim.arrive(("alice", "a"))
        run(shim)
        assert shim.refused
        assert shim.table == {}


def test_a_change_of_client_quotas_asks_again_only_for_those_it_concerns() -> None:
    shim = FakeShim({"static.produce": "2M"})
    shim.arrive(("alice", "a"), ("bob", "b"))
    shim.idle(2)
    shim.script.append(shim.published.clear)
    shim.post("client-quota", "PRODUCE", "name", "alice", "", "", "3000000.0")
    shim.idle()
    run(shim)
    assert [client.principal for client in shim.published] == ["alice"]
    assert shim.rate("alice", "a") == 3e6


def test_listed_principals_and_the_brokers_are_exempt() -> None:
    node = node_of(4, "ANONYMOUS", "broker")
    shim = FakeShim({"static.produce": "2M", "static.excluded.principal.name.list": "User:root"}, node)
    shim.arrive(("root", "x"), ("broker", "y"), ("ANONYMOUS", "4"), ("ANONYMOUS", "quotahost-4"))
    shim.arrive(("ANONYMOUS", "5"), ("ANONYMOUS", "app"), ("alice", "4"))
    run(shim)
    exempt = {c for c in shim.table if shim.code(*c) == EXEMPT}
    assert {c.client_id for c in exempt} == {"x", "y", "4", "quotahost-4"}
    assert shim.code("alice", "4") != EXEMPT


def test_a_broker_that_joins_is_exempt_from_then_on() -> None:
    shim = FakeShim({"static.produce": "2M"}, node_of(4, "ANONYMOUS"))
    shim.arrive(("ANONYMOUS", "5"))
    shim.post("cluster", "the-cluster", "4", "5")
    shim.idle()
    run(shim)
    assert shim.code("ANONYMOUS", "5") == EXEMPT


def test_the_fence_hears_who_is_exempt_before_the_settings_and_again_as_brokers_join() -> None:
    node = node_of(4, "ANONYMOUS", "broker")
    shim = FakeShim({"static.excluded.principal.name.list": "User:root"}, node)
    shim.script.append(lambda: assert_exempted(shim, ["4", "quotahost-4"]))
    shim.post("cluster", "the-cluster", "4", "5")
    shim.script.append(lambda: assert_exempted(shim, ["4", "5", "quotahost-4", "quotahost-5"]))
    shim.post("cluster", "the-cluster", "4", "5")
    shim.reconfigure(**{"static.excluded.principal.name.list": "User:boss"})
    run(shim)
    assert shim.exempted[-1] == (["boss", "broker"], ["4", "5", "quotahost-4", "quotahost-5"], INTERNAL_CLIENT_IDS)
    assert len(shim.exempted) == 3


def assert_exempted(shim: FakeShim, client_ids: list[str]) -> None:
    assert shim.exempted[-1] == (["broker", "root"], client_ids, INTERNAL_CLIENT_IDS)


def test_where_brokers_are_anonymous_kafkas_own_clients_and_quotahosts_are_exempt_by_their_client_ids() -> None:
    exempt = [
        "4",
        "quotahost-4",
        "quotahost-7",
        "quotahost-pipeline",
        "quotahost-top",
        "quotahost-quotas",
        "broker-1-fetcher-0",
        "raft-client-3",
    ]
    exempt += ["broker-1-txn-marker-sender", "AddPartitionsManager-client-2", "Persister-client-2"]
    exempt += ["NetworkPartitionMetadataClient-client-2", "broker-1-" + 247 * "x"]
    exempt += [f"__remote_log_metadata_client_2_{what}" for what in ("producer", "consumer", "admin")]
    others = [
        "2",
        "",
        "broker-x-fetcher",
        "broker-1-",
        "broker-1-a b",
        "my-broker-1-a",
        "raft-client-",
        "raft-client-\u0663",
        "broker-1-" + 248 * "x",
        "Persister-client-x",
        "__remote_log_metadata_client_2_other",
    ]
    shim = FakeShim({"static.produce": "2M"}, node_of(4, "ANONYMOUS"))
    shim.arrive(*[("ANONYMOUS", client_id) for client_id in exempt + others])
    run(shim)
    assert [c.client_id for c in shim.table if shim.code(*c) == EXEMPT] == exempt


def test_client_ids_do_not_count_where_brokers_authenticate() -> None:
    shim = FakeShim({}, node_of(4, "broker"))
    shim.idle()
    run(shim)
    assert shim.exempted == [(["broker"], [], "")]


@pytest.mark.parametrize("kind", ["kafka", "static.kafka.admin"])
def test_where_brokers_authenticate_an_anonymous_client_of_the_plugins_writes_its_topics_and_claims_no_client_id(
    kind: str,
) -> None:
    shim = FakeShim({f"{kind}.bootstrap.servers": "localhost:9092"}, node_of(4, "b"))
    shim.arrive(("ANONYMOUS", "quotahost-4"), ("ANONYMOUS", "4"))
    run(shim)
    assert shim.exempted == [(["b"], [], "")]
    assert shim.code("ANONYMOUS", "quotahost-4") != EXEMPT
    assert shim.code("ANONYMOUS", "4") != EXEMPT
    assert shim.spared == ["__quotahost_snapshots", "__quotahost_usage", "__quotahost_looks"]


@pytest.mark.parametrize(
    ("given", "brokers"),
    [
        ({}, "b"),
        ({"kafka.bootstrap.servers": "h:1"}, "ANONYMOUS"),
        ({"kafka.bootstrap.servers": "h:1", "kafka.security.protocol": "SASL_SSL"}, "b"),
    ],
)
@pytest.mark.parametrize("tiering", [True, False])
def test_the_fence_spares_tiered_storages_metadata_where_it_is_in_use_and_no_topic_of_the_plugins_otherwise(
    given: dict[str, str], brokers: str, tiering: bool
) -> None:
    node = node_of(4, brokers)
    shim = FakeShim(given, node | ({"remote.log.storage.system.enable": "true"} if tiering else {}))
    shim.idle()
    run(shim)
    assert shim.spared == (["__remote_log_metadata"] if tiering else [])


@pytest.mark.parametrize("error", [RuntimeError, SystemExit, KeyboardInterrupt])
def test_a_failing_supplier_is_counted_and_asked_again_for_its_client(
    state: dict[str, Any], error: type[BaseException]
) -> None:
    def fail(client: object) -> None:
        raise error

    clock = Clock()
    state["answer"] = fail
    shim = FakeShim({"supplier": "mine"})
    shim.arrive(("alice", "a"))

    def heal() -> None:
        assert shim.code("alice", "a") == NEWCOMER
        assert shim.failed.count("mine") == 4
        del state["answer"]
        clock.now += RETRY

    shim.script.append(heal)
    shim.idle()
    run(shim, clock)
    assert shim.rate("alice", "a") == 5.0


@pytest.mark.parametrize("answer", [float("nan"), 0, -1.0, "fast", True, object()])
def test_an_answer_of_another_type_is_the_suppliers_failure(state: dict[str, Any], answer: object) -> None:
    state["answer"] = answer
    shim = FakeShim({"supplier": "mine"})
    shim.arrive(("alice", "a"))
    run(shim)
    assert shim.code("alice", "a") == NEWCOMER


def test_live_properties_are_announced_and_taken_over(state: dict[str, Any]) -> None:
    shim = FakeShim({"static.produce": "2M"})
    shim.arrive(("alice", "a"))
    shim.reconfigure(**{"static.produce": "3M"})
    shim.idle()
    run(shim)
    assert shim.rate("alice", "a") == 3e6
    assert "client.quota.callback.static.produce" in shim.live
    assert "client.quota.callback.clients.max" not in shim.live


def test_a_swapped_supplier_is_built_before_the_old_one_is_closed_and_hears_all_client_quotas(
    state: dict[str, Any],
) -> None:
    shim = FakeShim({"supplier": "mine"})
    shim.post("client-quota", "PRODUCE", "name", "alice", "", "", "9.0")
    shim.arrive(("alice", "a"))
    shim.reconfigure(supplier="client-quotas")
    shim.idle()
    run(shim)
    assert shim.rate("alice", "a") == 9.0
    assert state["closed"] == ["mine"]


def test_a_refused_change_leaves_everything_as_it_was(state: dict[str, Any]) -> None:
    shim = FakeShim({"supplier": "mine"})
    shim.arrive(("alice", "a"))
    shim.validate("1", supplier="nobody")
    shim.validate("2", supplier="static")
    shim.reconfigure(supplier="nobody")
    shim.idle()
    run(shim)
    assert "nobody" in str(shim.verdicts["1"])
    assert shim.verdicts["2"] is None
    assert shim.rate("alice", "a") == 5.0
    assert state["closed"] == ["mine"], "closed once, at the end"


def test_a_live_change_validates_a_plugins_own_properties_once(state: dict[str, Any]) -> None:
    shim = FakeShim({"supplier": "mine"})
    change = {"supplier": "adaptable,checked"}
    for share in ("0.1", "0.2"):
        change |= {f"plugin.{name}.share": share for name in ("checked", "adaptable")}
        shim.validate("1", **change)
        shim.reconfigure(**change)
    shim.arrive(("alice", "a"))
    run(shim)
    assert shim.verdicts["1"] is None
    assert state["validated"] == [0.1, 0.1, 0.2, 0.2]
    assert state["reconfigured"] == 0.2
    assert shim.rate("alice", "a") == 0.2


def test_each_answer_says_which_supplier_gave_it_or_why_the_client_is_exempt(state: dict[str, Any]) -> None:
    excluded = "static.excluded.principal.name.list"
    given = {"supplier": "mine,static", "static.produce": "1M", excluded: "User:root", "kafka.sasl.username": "own"}
    shim = FakeShim(given, node_of(1, "kafka"))
    state["answer"] = None
    shim.arrive(("alice", "a"), ("root", "a"), ("kafka", "a"), ("own", "a"), ("ANONYMOUS", "1"))
    run(shim)
    sources = {client.principal: names for client, names in shim.sources.items()}
    assert sources["root"] == ["excluded"] * 4
    assert sources["kafka"] == ["broker"] * 4
    assert sources["own"] == ["plugin"] * 4
    assert sources["alice"] == sources["ANONYMOUS"] == ["static", "", "", ""]


def test_the_factor_follows_the_source(state: dict[str, Any]) -> None:
    clock = Clock()
    shim = FakeShim({"supplier": "static", "factor.source": "mine", "policy": "mine"})
    mine = __import__("mine")
    volumes = (mine.Volume("1", "/a", 100, 40), mine.Volume("2", "/b", 100, 75))
    state["factor"] = mine.ClusterVolumes(volumes)
    shim.on_take = lambda: setattr(clock, "now", clock.now + 1)
    shim.idle()
    shim.script.append(lambda: state.update(factor=mine.Factor(0.5)))
    shim.idle()
    shim.script.append(lambda: state.update(factor=mine.Factor(0.501)))
    shim.idle()
    run(shim, clock)
    assert shim.factors == [0.25, 0.5], "the fullest volume; a change that isn't worth a step is none"


@pytest.mark.parametrize(("action", "factor"), [("PAUSE", 0.0), ("OPEN", 1.0)])
def test_a_source_that_fails_leads_to_the_fallback_after_validity(
    state: dict[str, Any], action: str, factor: float
) -> None:
    clock = Clock()
    given = {"supplier": "static", "factor.source": "mine", "fallback.action": action, "validity": "10s"}
    shim = FakeShim(given)
    mine = __import__("mine")
    state["factor"] = mine.Factor(0.5)
    shim.on_take = lambda: setattr(clock, "now", clock.now + 1)
    shim.idle(2)
    shim.script.append(lambda: state.update(factor=lambda: 1 / 0))
    shim.idle(9)
    shim.script.append(lambda: state.update(at_nine=list(shim.factors)))
    shim.idle(3)
    run(shim, clock)
    assert state["at_nine"] == [0.5]
    assert shim.factors == [0.5, factor]


def test_the_cause_of_the_factor_is_handed_on_also_when_only_it_changes(state: dict[str, Any]) -> None:
    clock = Clock()
    shim = FakeShim({"supplier": "static", "factor.source": "mine", "policy": "mine"})
    mine = __import__("mine")
    state["factor"] = mine.Factor(0.5, "one")
    shim.on_take = lambda: setattr(clock, "now", clock.now + 1)
    shim.idle(2)
    shim.script.append(lambda: state.update(factor=mine.Factor(0.5, "other")))
    shim.idle(2)
    run(shim, clock)
    assert (shim.factors, shim.causes) == ([0.5], ["one", "other"])


@pytest.mark.parametrize(
    ("given", "has_fence", "times"),
    [
        ({"factor.source": "fixed"}, False, 1),
        ({"factor.source": "fixed"}, True, 0),
        ({"factor.source": "fixed", "mode": "shadow"}, False, 0),
        ({"factor.source": "fixed", "shadow": "factor"}, False, 0),
        ({}, False, 0),
    ],
)
def test_a_pause_that_no_fence_can_hold_is_warned_of_once_soon_after_the_start(
    caplog: pytest.LogCaptureFixture, given: dict[str, str], has_fence: bool, times: int
) -> None:
    clock = Clock()
    shim = FakeShim({"supplier": "static", **given})
    shim.on_take = lambda: setattr(clock, "now", clock.now + 1)
    shim.idle(4)  # a broker makes its authorizer, and so the fence, after its callback
    shim.script.append(lambda: setattr(shim, "has_fence", has_fence))
    shim.idle(20)
    run(shim, clock)
    assert sum("QuotaFence" in record.getMessage() for record in caplog.records) == times


def test_a_task_runs_on_its_own_thread_and_is_closed_there(state: dict[str, Any]) -> None:
    state["ran"] = threading.Event()
    shim = FakeShim({"supplier": "static", "tasks": "mine"})
    shim.script.append(lambda: state["ran"].wait(60) and None)
    run(shim)
    assert state["ran"].is_set()
    assert state["closed"] == ["mine"]
    assert not [t for t in threading.enumerate() if t.name.startswith("quotahost-task")]
    assert timedelta(0) < __import__("mine").Task.period


def test_an_empty_batch_changes_nothing() -> None:
    shim = FakeShim()
    shim.script.append(Batch([]))
    assert run(shim).table == {}


def test_the_plugins_share_one_monitor_of_the_disks_that_ends_after_them(state: dict[str, Any], tmp_path: Path) -> None:
    state["ran"] = threading.Event()
    given = {"supplier": "static", "factor.source": "disky", "tasks": "disky", "factor.interval": "100ms"}
    shim = FakeShim(given, {"node.id": "1", "log.dirs": str(tmp_path)})
    shim.script.append(lambda: state["ran"].wait(60) and None)
    shim.reconfigure(**{"static.storage.overrides": f"{tmp_path} hard=5", "volumes.period": "1s"})
    clock = Clock()
    shim.on_take = lambda: setattr(clock, "now", clock.now + 1)
    run(shim, clock)
    assert [volume.broker for volume in state["volumes"]] == ["1"]
    assert state["looking"] == 1
    assert "quotahost-disks" not in [thread.name for thread in threading.enumerate()]


def test_an_event_that_cannot_be_handled_costs_nothing_but_itself(caplog: pytest.LogCaptureFixture) -> None:
    shim = FakeShim({"static.produce": "5M"})
    good = "cluster", ("id-1", "1", "2")
    shim.script.append(Batch([Client("alice", "app")], [Event("client-quota", ("NO_TYPE",)), Event(*good)]))
    shim.script.append(Batch([], [Event("reconfigure", ("7", "odd"))]))

    Host(shim).run()

    assert shim.table[Client("alice", "app")][0][1] == 5_000_000
    assert shim.shown["Host", "", "EventErrors"] == 2
    assert shim.shown["Host", "", "ConfigRefused"] == 1
    assert "the host failed at the change" in str(shim.verdicts["7"])
    assert sum("can't be handled" in each.getMessage() for each in caplog.records) == 1  # logged once, not in a flood


@pytest.fixture
def fault_handler(tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Enables Python's faulthandler, as a plugin may."""
    with (tmp_path / "faults").open("w") as file:
        yield lambda: faulthandler.enable(file)
        faulthandler.disable()


def test_a_faulthandler_that_is_enabled_before_the_plugins_are_built_ends_the_start(
    state: dict[str, Any], fault_handler: Callable[[], None]
) -> None:
    fault_handler()
    shim = run(FakeShim({"supplier": "mine"}))
    assert shim.refused is not None
    assert "Python's faulthandler was enabled by Python's start: it takes the JVM's handler" in shim.refused
    assert "built" not in state
    assert not faulthandler.is_enabled()


def test_a_plugin_that_enables_faulthandler_ends_the_start(
    state: dict[str, Any], fault_handler: Callable[[], None]
) -> None:
    module = __import__("mine")
    module.Supplier.close = lambda self: None
    module.Supplier.__init__ = lambda self, context: fault_handler()
    shim = run(FakeShim({"supplier": "mine"}))
    assert shim.refused is not None
    assert "faulthandler was enabled by a plugin" in shim.refused
    assert not faulthandler.is_enabled()


def test_a_faulthandler_that_is_enabled_later_is_disabled_again_with_one_line(
    state: dict[str, Any], fault_handler: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    shim, clock = FakeShim({"supplier": "mine"}), Clock()
    enabled: list[bool] = []
    for _ in range(3):
        shim.script += [fault_handler, lambda: setattr(clock, "now", clock.now + 2)]
        shim.idle()
        shim.script.append(lambda: enabled.append(faulthandler.is_enabled()))
    run(shim, clock)
    assert enabled == [False] * 3
    assert caplog.text.count("a plugin has enabled Python's faulthandler, which is disabled again") == 1
