"""Plugins: which factor sources go together, what a controller needs, guarded calls, and tasks on their threads."""

import threading
import traceback
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, Final

import pytest
from pydantic import create_model

from harness.system.waiting import eventually
from quotahost.api import Role
from quotahost.api.context import LoadedPlugin, no_disks
from quotahost.broker.discovery import PluginError, failing
from quotahost.broker.host.logs import Logs
from quotahost.broker.host.plugins import Builder, Guard, NodeRoles, PluginSet, Scheduler
from quotahost.model import QuotaType, State
from quotahost.settings.broker import Settings
from quotahost.testing.broker import FakeBroker
from tests.fakes.plugin_context import context, fails, settings
from tests.fakes.shim import FakeShim


def test_one_factor_source_watches_disks_others_quota_types(mine: Any) -> None:
    builder = Builder(FakeBroker(), FakeBroker(), lambda *_: None, no_disks, Guard(FakeShim()))

    def built(sources: str, old: PluginSet | None = None) -> PluginSet:
        named = settings(factor__source=sources)
        return builder.build(named, builder.validate(named), old or PluginSet(()))

    plugins = built("disks,typed")
    source = plugins.factor_source
    assert source is not None
    assert (source[0], [name for name, *_ in plugins.typed_sources]) == ("disks", ["typed"])
    (_, typed, _) = plugins.typed_sources[0]
    typed.quota_types = None  # type: ignore[attr-defined]
    later = built("disks,typed", plugins)
    assert later.typed_sources == [("typed", typed, {QuotaType.FETCH})], "what it changes later counts no more"
    with pytest.raises(PluginError, match="disks already says how full the disks are"):
        built("disks,typed,more")
    assert built("typed").factor_source is None
    with pytest.raises(PluginError, match="'typed': it is for single quota types; name disks first"):
        built("typed,disks")
    with pytest.raises(PluginError, match=r"'wrong': .*: quota_types must be a collection of QuotaType"):
        built("disks,wrong")
    mine.Wrong.quota_types = property(fails)
    with pytest.raises(PluginError, match="'wrong': is not fit for its role: RuntimeError"):
        built("disks,wrong")


def test_a_factor_source_that_is_not_fit_shows_no_secret(mine: Any) -> None:
    def telltale(source: Any) -> Any:
        raise RuntimeError(f"{source.context.section.token}, {source.context.broker.client_config()}")

    mine.Typed.Section = create_model("Section", token=(str, ""))
    mine.Typed.quota_types = property(telltale)
    broker = FakeBroker(client={"sasl.password": "S3CR3T-1"})
    builder = Builder(broker, broker, lambda *_: None, no_disks, Guard(FakeShim()))
    named = settings(factor__source="typed", plugin__typed__token="S3CR3T-2")
    with pytest.raises(PluginError, match=r"is not fit for its role: RuntimeError: \*\*\*, ") as error:
        builder.build(named, builder.validate(named), PluginSet(()))
    assert "S3CR3T" not in "".join(traceback.format_exception(error.value))


BROKERS: Final = {"static__kafka__admin__bootstrap__servers": "b:9092"}
CONTROLLER: Final = NodeRoles({"process.roles": "controller"})
BROKER: Final = NodeRoles({"process.roles": "broker,controller"})


def pauses(source: str, **more: str) -> Settings:
    return settings(factor__source=source, fallback__action="PAUSE", **more)


@pytest.mark.parametrize(
    ("node", "source", "more", "needed"),
    [
        # A controller judges the volumes if it knows where the brokers are; it serves no client.
        *((CONTROLLER, source, BROKERS, set(Role) - {Role.TASK}) for source in ("snapshots", "cluster-volumes")),
        # Otherwise it has suppliers alone, and a silent host is no full disk.
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


def test_where_no_source_watches_disks_a_silent_host_is_no_full_disk_unless_that_is_written() -> None:
    for given, action in ((pauses("typed"), State.PAUSE), (settings(factor__source="typed"), State.OPEN)):
        assert BROKER.applied(given, watches_disks=False).fallback_action is action


def test_a_kind_of_error_that_is_known_is_logged_once_however_many_there_are(caplog: pytest.LogCaptureFixture) -> None:
    guard, kinds = Guard(FakeShim()), [type(f"Error{number}", (Exception,), {}) for number in range(100)]
    for kind in (*kinds, *kinds):
        guard.report("mine", "read()", "the last answer stays", kind())
    assert caplog.text.count("plugin mine failed in read()") == 100  # a thread of another test may log, too


def test_an_error_that_is_raised_again_and_again_keeps_none_of_the_frames_that_it_has_passed() -> None:
    guard, rates = Guard(FakeShim()), Future[float]()
    rates.set_exception(RuntimeError("no rates"))

    def chained() -> None:
        try:
            rates.result()
        except RuntimeError as error:
            raise LookupError from error

    for quota in (rates.result, chained):  # for 50,000 clients it would take 200 MB, every five seconds
        guard.call("mine", "quota()", "its clients keep their last quota", quota)
        assert rates.exception().__traceback__ is None  # type: ignore[union-attr]


class Evil(Exception):
    """Its text can be made, its traceback can't."""

    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]
        raise SystemExit("a plugin's, not the host's")


class Hidden(Exception):
    """It hides where it was raised, and its text is no plain one."""

    @property
    def __traceback__(self) -> Any:  # type: ignore[override]
        raise SystemExit("a plugin's, not the host's")

    def __str__(self) -> str:
        own: type[str] = type("Own", (str,), {"split": fails})
        return own("of mine")


class Nameless(type):
    def __getattribute__(cls, name: str) -> Any:
        if name in ("__name__", "__qualname__"):
            raise SystemExit("a plugin's, not the host's")
        return super().__getattribute__(name)


@pytest.mark.parametrize("kind", [Evil, Hidden, Nameless("Own", (Exception,), {})], ids=["notes", "trace", "name"])
def test_an_error_that_can_not_be_shown_is_one_of_the_plugin_like_any_other(kind: type[Exception]) -> None:
    shim = FakeShim()
    with Logs(shim):
        Guard(shim).report("mine", "read()", "the last answer stays", kind("of mine"))
    assert shim.failed == ["mine"]
    assert shim.lines[0].startswith(("a log line can't be made: SystemExit", "plugin mine failed in read()"))
    with (
        pytest.raises(PluginError, match=r"cannot be built: [A-Z][a-z]+: of mine"),
        failing(Role.TASK, "mine", "cannot be built"),
    ):
        raise kind("of mine")


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
    shim, first, second, seldom = FakeShim(), Task(), Task(), Task()
    seldom.period = timedelta.max
    second.period = type("Own", (timedelta,), {"total_seconds": fails})(milliseconds=1)
    broken = type("Broken", (Task,), {"run": property(fails)})()
    scheduler, tasks = Scheduler(Guard(shim)), {"first": first, "second": second, "seldom": seldom, "broken": broken}
    loaded = [LoadedPlugin(Role.TASK, task, context(name=name)) for name, task in tasks.items()]
    opened: list[str] = []
    loaded[0].context.closing.callback(lambda: opened.append(threading.current_thread().name))
    scheduler.set(loaded)
    eventually(lambda: first.runs > 1 and second.runs > 50 and seldom.runs)
    eventually(lambda: shim.shown.get(("Plugin", "broken", "Errors"), 0) > 1)
    scheduler.set(loaded[1:])
    eventually(lambda: [first.closed_by, *opened] == ["quotahost-task-first"] * 2)
    assert second.closed_by == ""
    scheduler.set([])
    eventually(lambda: second.closed_by == "quotahost-task-second")
    assert seldom.runs == 1
