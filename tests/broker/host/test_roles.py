"""A user's own factor source, policy and task work and fail in every way; the broker serves, and all of it recovers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import fill_topic
from harness.kafka.admin import alter_broker_config, create_topic
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, IN_CHILD, PREFIX
from harness.system.waiting import eventually
from tests.broker.support.node import PLUGINS, callback_node, check_serves, tell
from tests.broker.support.seen import ANYONE, gauge, has_own_quota, limit_of
from tests.fakes.packages import distribute

VALIDITY = "4s"  # shorter than the time for which the plugins hold the interpreter's lock
QUOTA, LEFT = 20_000_000.0, 0.75  # bytes/s, and the factor that is in force while everything works
ERRORS = {"raise": "RuntimeError", "exit": "SystemExit", "interrupt": "KeyboardInterrupt", "nonsense": ""}
METHODS = {"source": "read()", "policy": "quota_factor()", "task": "run()"}
ASKED = ("source", "policy")  # those that the host's own thread asks, one as the other, and as a supplier
POLICY = pytest.param("policy", marks=pytest.mark.long)
LATE = """
    from quotahost.model import Quota

    class Late:
        def __init__(self, context):
            pass

        def quota(self, client, quota_type):
            return Quota(7_000_000) if client.client_id.startswith("late-") else None
    """


class World:
    """A broker with the three plugins, and the folder by which they are told how to behave."""

    def __init__(self, node: KafkaNode, folder: Path) -> None:
        self.node, self.folder = node, folder
        self.task_hangs = folder / "task.hangs"

    def tell(self, plugin: str, mood: str) -> None:
        tell(self.folder / plugin, mood)

    def heal(self) -> None:
        for plugin in METHODS:
            (self.folder / plugin).unlink(missing_ok=True)
        self.task_hangs.unlink(missing_ok=True)

    def fill(self, thousandths: int) -> None:
        tell(self.folder / "consumed", str(thousandths))

    def errors(self, plugin: str) -> float:
        return gauge(self.node, f"Plugin,name={'outsider-task' if plugin == 'task' else 'outsider'}", "Errors")

    def runs(self, task: str) -> float:
        return gauge(self.node, task, "Runs")

    def factor(self) -> float:
        return gauge(self.node, "QuotaTable", "Factor")

    def fallbacks(self) -> float:
        return gauge(self.node, "Lease", "FallbackApplied")

    def check_serves(self, client_id: str, limit: float | None = None) -> None:
        """Checks that a client produces and consumes; and its limit, if one is given."""
        check_serves(self.node, client_id)
        if limit is not None:
            eventually(lambda: limit_of(self.node, ANYONE, client_id) == limit, what=f"limit {limit}")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    folder = tmp_path_factory.mktemp("roles")
    settings = {
        "supplier": "static",
        "static.produce": str(QUOTA),
        "factor.source": "outsider",
        "policy": "outsider",
        "tasks": "outsider-task,neighbour",
        "factor.interval": "100ms",
        "validity": VALIDITY,
        "fallback.action": "OPEN",
        "max.mute": "30d",  # the factor falls in one step
        "fence.authorizer": "none",
    }
    (folder / "consumed").write_text("250")
    env = {"PYTHONPATH": f"{PLUGINS}:{folder}", "ROLES": str(folder)}
    with callback_node(tmp_path_factory.mktemp("node"), settings, env=env, properties=QUICK_QUOTAS | FENCE) as node:
        create_topic(node, "t")
        fill_topic(node.client_config(client_id="filler"), "t", 5_000_000)
        yield node


@pytest.fixture
def world(node: KafkaNode) -> Iterator[World]:
    made = World(node, Path(node.env["ROLES"]))
    eventually(lambda: made.factor() == LEFT, what="everything works")
    yield made
    made.fill(250)
    made.heal()


@pytest.mark.proves("proposal-035.factor-source", "proposal-035.task", "proposal-035.policy", "mission.roles")
def test_they_work_as_they_are_written(world: World) -> None:
    world.check_serves("known", QUOTA * LEFT)
    world.fill(500)
    world.check_serves("known", QUOTA * 0.5)
    world.fill(1000)
    eventually(lambda: gauge(world.node, "Fence", "Closed") == 1)
    world.fill(250)
    eventually(lambda: gauge(world.node, "Fence", "Closed") == 0)
    world.check_serves("known", QUOTA * LEFT)
    before = world.runs("Outsider"), world.runs("Neighbour")
    eventually(lambda: world.runs("Outsider") > before[0] and world.runs("Neighbour") > before[1])
    assert world.errors("source") == world.errors("task") == 0
    world.node.wait_for_log("thread leaves of plugin neighbour ended")


@pytest.mark.proves("proposal-035.supplier", "proposal-035.static", "mission.entry-points")
def test_a_rule_that_is_installed_while_the_broker_runs_applies_without_a_restart(world: World) -> None:
    distribute(world.folder, "late", {"quotahost.suppliers": {"late": "late:Late"}}, {"late": LATE})
    alter_broker_config(world.node, {PREFIX + "supplier": "late,static"})
    world.check_serves("late-client", 7_000_000 * LEFT)
    world.check_serves("known", QUOTA * LEFT)
    alter_broker_config(world.node, {PREFIX + "supplier": None})
    world.check_serves("late-client", QUOTA * LEFT)


@pytest.mark.proves("proposal-035.fallback")
@pytest.mark.parametrize("plugin", ["source", POLICY, "task"])
@pytest.mark.proves("faults.plugin-error")
def test_each_failure_is_counted_logged_once_and_ends_in_the_stated_fallback(world: World, plugin: str) -> None:
    start = world.node.log.end()
    for mood, error in ERRORS.items():
        world.tell(plugin, mood)
        before = world.errors(plugin)
        eventually(lambda b=before: world.errors(plugin) > b + 3, what=f"{plugin} {mood}")
        if error:
            world.node.wait_for_log(f"^  {error}", start=start)
            assert world.node.log_text(start).count(f"\n  {error}") == 1, "once, however often it fails"
    if plugin in ASKED:
        eventually(
            lambda: (world.factor(), gauge(world.node, "Factor", "Unknown")) == (1.0, 1),
            what="fallback.action=OPEN after validity",
        )
        world.node.wait_for_log(f"plugin outsider failed in {METHODS[plugin]}".replace("()", r"\(\)"), start=start)
        world.node.wait_for_log("its last factor holds for validity", start=start)
    else:
        eventually(lambda: world.factor() == LEFT)
        world.node.wait_for_log("it runs again after its period", start=start)
    world.check_serves("known", QUOTA if plugin in ASKED else QUOTA * LEFT)
    world.check_serves(f"new-while-{plugin}-fails")
    runs = world.runs("Outsider")
    world.heal()
    eventually(lambda: world.factor() == LEFT and world.runs("Outsider") > runs + 1)
    eventually(lambda: gauge(world.node, "Factor", "Unknown") == 0)
    world.node.wait_for_log("works again in", start=start)
    eventually(lambda: has_own_quota(world.node, ANYONE, f"new-while-{plugin}-fails"))


@pytest.mark.proves("proposal-035.task", "faults.task-hang")
def test_a_task_that_hangs_delays_neither_the_host_nor_another_task(world: World) -> None:
    world.tell("task", "hang")
    eventually(world.task_hangs.exists)
    stuck = world.runs("Outsider")
    before = world.runs("Neighbour")
    eventually(lambda: world.runs("Neighbour") > before + 5)
    world.fill(500)
    world.check_serves("new-beside-a-task-that-hangs", QUOTA * 0.5)
    assert world.runs("Outsider") == stuck
    eventually(lambda: gauge(world.node, "Lease", "Expired") == 0)
    world.heal()
    eventually(lambda: world.runs("Outsider") > stuck)


@pytest.mark.proves("faults.hang")
def test_a_task_that_holds_the_interpreters_lock_lets_the_lease_expire_and_stops_no_request(world: World) -> None:
    applied = world.fallbacks()
    world.tell("task", "gil")
    eventually(lambda: world.fallbacks() > applied, what="Java notices without Python")
    world.check_serves("known")
    world.check_serves("new-while-the-lock-is-held")
    eventually(lambda: gauge(world.node, "Lease", "Expired") == 0)
    eventually(lambda: has_own_quota(world.node, ANYONE, "new-while-the-lock-is-held"))
    eventually(lambda: world.factor() == LEFT)


@pytest.mark.proves("faults.orphan")
def test_a_broker_in_which_all_of_them_hang_stops_cleanly(world: World) -> None:
    # In a process of its own a host that was silent for longer than validity was killed.
    assert IN_CHILD or gauge(world.node, "Host", "Restarts") == 0, "no failure ended the host"
    for plugin in METHODS:
        world.tell(plugin, "hang")
    eventually(lambda: gauge(world.node, "Lease", "Expired") == 1)
    assert world.node.stop() == 143
    assert (world.node.data_dirs[0] / ".kafka_cleanshutdown").exists()
