"""Tests plugins: combined factor sources, what a controller needs, guarded calls, and tasks on their threads."""

import threading
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, Final

import pytest

from harness.system.waiting import eventually
from quotahost.api import Role
from quotahost.api.context import LoadedPlugin, no_disks
from quotahost.base.background import LoggedOnce
from quotahost.broker.discovery import PluginError
from quotahost.broker.host.plugins import Builder, Guard, NodeRoles, PluginSet, Scheduler
from quotahost.model import QuotaType, State
from quotahost.settings.broker import Settings
from quotahost.testing.broker import FakeBroker
from tests.fakes.plugin_context import context, settings
from tests.fakes.shim import FakeShim


def test_one_factor_source_watches_disks_others_quota_types(mine: Any) -> None:
    builder = Builder(FakeBroker(), FakeBroker(), lambda *_: None, no_disks, Guard(FakeShim()))

    def built(sources: str) -> PluginSet:
        named = settings(factor__source=sources)
        return builder.build(named, builder.validate(named), PluginSet(()))

    plugins = built("disks,typed")
    source = plugins.factor_source
    assert source is not None
    assert source[0] == "disks"
    assert [(name, types) for name, _, types in plugins.typed_sources] == [("typed", {QuotaType.FETCH})]
    with pytest.raises(PluginError, match="disks already says how full the disks are"):
        built("disks,typed,more")
    assert built("typed").factor_source is None
    with pytest.raises(PluginError, match="'typed': it is for single quota types; name disks first"):
        built("typed,disks")
    with pytest.raises(PluginError, match=r"'wrong': .*: quota_types must be a collection of QuotaType"):
        built("disks,wrong")


BROKERS: Final = {"static__kafka__admin__bootstrap__servers": "b:9092"}
CONTROLLER: Final = NodeRoles({"process.roles": "controller"})
BROKER: Final = NodeRoles({"process.roles": "broker,controller"})


def pauses(source: str, **more: str) -> Settings:
    return settings(factor__source=source, fallback__action="PAUSE", **more)


@pytest.mark.parametrize(
    ("node", "source", "more", "needed"),
    [
        # A controller judges the volumes if it has the brokers' addresses; it serves no client.
        *((CONTROLLER, source, BROKERS, set(Role) - {Role.TASK}) for source in ("snapshots", "cluster-volumes")),
        # Otherwise it has only suppliers, and a silent host causes no PAUSE.
        *((CONTROLLER, source, more, {Role.SUPPLIER})
          for source, more in (("snapshots", {}), ("local", BROKERS), ("log-dirs", BROKERS))),
        *((BROKER, source, more, set(Role)) for source, more in (("snapshots", {}), ("local", BROKERS))),
    ],
)  # fmt: skip
def test_a_node_needs_the_plugins_of_these_roles_and_pauses_by_itself_where_it_judges_volumes(
    node: NodeRoles, source: str, more: dict[str, str], needed: set[Role]
) -> None:
    given, watches = pauses(source, **more), Role.FACTOR_SOURCE in needed
    names = {Role.POLICY: "limits"}
    assert {role for role in Role if node.needs(role, names.get(role, source), given)} == needed
    assert node.applied(given, watches_disks=watches).fallback_action is (State.PAUSE if watches else State.OPEN)
    assert not CONTROLLER.needs(Role.FACTOR_SOURCE, "load", given)
    # Where no source watches disks, a silent host is no full disk unless that is written.
    for given, action in ((pauses("typed"), State.PAUSE), (settings(factor__source="typed"), State.OPEN)):
        assert BROKER.applied(given, watches_disks=False).fallback_action is action


def test_an_error_that_is_raised_again_and_again_keeps_none_of_the_frames_that_it_has_passed() -> None:
    guard, rates = Guard(FakeShim()), Future[float]()
    rates.set_exception(RuntimeError("no rates"))

    def chained() -> None:
        try:
            rates.result()
        except RuntimeError as error:
            raise LookupError from error

    for quota in (rates.result, chained):  # 50,000 clients' tracebacks would take 200 MB every 5 s
        guard.call("mine", "quota()", "its clients keep their last quota", quota)
        assert rates.exception().__traceback__ is None  # type: ignore[union-attr]


def test_a_task_that_a_change_has_left_behind_may_fail_while_its_successor_recovers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guard, healed = Guard(FakeShim()), LoggedOnce.healed

    def meanwhile(fault: LoggedOnce) -> bool:
        guard.report("mine", "run()", "it runs again after its period", LookupError())
        return healed(fault)

    monkeypatch.setattr(LoggedOnce, "healed", meanwhile)
    guard.report("mine", "run()", "it runs again after its period", RuntimeError())
    assert guard.call("mine", "run()", "it runs again after its period", lambda: "done") == "done"


class Task:
    """Runs each millisecond."""

    period = timedelta(milliseconds=1)

    def __init__(self) -> None:
        self.runs = 0
        self.closed_by = ""

    def run(self) -> None:
        self.runs += 1
        raise RuntimeError("of no consequence for the next run")

    def close(self) -> None:
        self.closed_by = threading.current_thread().name


@pytest.mark.proves("proposal-035.task")
def test_a_task_runs_at_the_start_and_in_each_period_until_it_is_no_longer_configured() -> None:
    first, second, seldom = Task(), Task(), Task()
    seldom.period = timedelta.max
    scheduler, tasks = Scheduler(Guard(FakeShim())), {"first": first, "second": second, "seldom": seldom}
    loaded = [LoadedPlugin(Role.TASK, task, context(name=name)) for name, task in tasks.items()]
    opened: list[str] = []
    loaded[0].context.closing.callback(lambda: opened.append(threading.current_thread().name))
    scheduler.set(loaded)
    eventually(lambda: first.runs > 1 and second.runs > 50 and seldom.runs)
    scheduler.set(loaded[1:])
    eventually(lambda: [first.closed_by, *opened] == ["quotahost-task-first"] * 2)
    assert second.closed_by == ""
    scheduler.set([])
    eventually(lambda: second.closed_by == "quotahost-task-second")
    assert seldom.runs == 1
