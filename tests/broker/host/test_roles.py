"""A user's own supplier, factor source, policy and task fail in every way; clients go on, and the plugins recover."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import fill_topic
from harness.clients.raw import introduce_clients
from harness.kafka.admin import alter_broker_config, create_topic
from harness.kafka.admin_socket import quota_now
from harness.kafka.node import KafkaNode
from harness.plugin import IN_CHILD, PREFIX
from harness.system.waiting import eventually
from tests.broker.support.commands import explain_client
from tests.broker.support.node import PLUGINS, callback_node, changed, check_serves, tell
from tests.broker.support.seen import ANYONE, gauge, has_own_quota, limit_of
from tests.fakes.packages import distribute

VALIDITY = "5s"  # less than the time for which a plugin holds the interpreter's lock; a busy machine may stall, too
QUOTA, LEFT, FLOOR = 5e6, 0.75, 35_000  # bytes/s, the factor in force while everything works, and bytes/s
OF_STATIC = 20e6
ERRORS = {"raise": "RuntimeError", "exit": "SystemExit", "interrupt": "KeyboardInterrupt", "nonsense": ""}
METHODS = {"source": "read()", "policy": "quota_factor()", "task": "run()"}
ASKED = ("source", "policy")  # the host's own thread asks both in the same way
POLICY = pytest.param("policy", marks=pytest.mark.long)
KILLED = pytest.mark.skipif(IN_CHILD, reason="a child process is killed in this case; test_child.py tests it")
LATE = """
    from quotahost.model import Quota

    class Late:
        def __init__(self, context): pass

        def quota(self, client, quota_type):
            return Quota(7_000_000) if client.client_id.startswith("late-") else None
    """


class World:
    """A broker with the plugins, and the folder whose files say how the plugins behave."""

    def __init__(self, node: KafkaNode) -> None:
        self.node, self.folder = node, Path(node.env["ROLES"])

    def tell(self, plugin: str, mood: str) -> None:
        tell(self.folder / plugin, mood)

    def heal(self) -> None:
        for plugin in ("supplier", *METHODS):
            self.tell(plugin, "")

    def fill(self, thousandths: int) -> None:
        self.tell("consumed", str(thousandths))

    def errors(self, plugin: str) -> float:
        return gauge(self.node, f"Plugin,name={'outsider-task' if plugin == 'task' else 'outsider'}", "Errors")

    def runs(self, task: str) -> float:
        return gauge(self.node, task, "Runs")

    def fallbacks(self) -> float:
        return gauge(self.node, "Lease", "FallbackApplied")

    def works(self) -> bool:
        return gauge(self.node, "QuotaTable", "Factor") == LEFT and gauge(self.node, "Lease", "Expired") == 0

    def check_limit(self, client_id: str, limit: float) -> None:
        eventually(lambda: limit_of(self.node, ANYONE, client_id) == limit, what=f"{client_id} has the limit {limit}")

    def check_serves(self, client_id: str, limit: float) -> None:
        """Checks that a client produces and consumes, and that it has this limit."""
        check_serves(self.node, client_id)
        self.check_limit(client_id, limit)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    folder = tmp_path_factory.mktemp("roles")
    settings = {
        "supplier": "outsider",
        "static.produce": str(OF_STATIC),
        "newcomers.produce": "20M",
        "clients.max": "1000",
        "factor.source": "outsider",
        "policy": "outsider",
        "tasks": "outsider-task,neighbour",
        "factor.interval": "100ms",
        "validity": VALIDITY,
        "fallback.action": "OPEN",
        "max.mute": "30d",  # the factor falls in one step
    }
    (folder / "consumed").write_text("250")
    env = {"PYTHONPATH": f"{PLUGINS}:{folder}", "ROLES": str(folder)}
    with callback_node(tmp_path_factory.mktemp("node"), settings, env=env, properties=dict(QUICK_QUOTAS)) as node:
        create_topic(node, "t")
        fill_topic(node.client_config(client_id="filler"), "t", 5_000_000)
        yield node


@pytest.fixture
def world(node: KafkaNode) -> Iterator[World]:
    made = World(node)
    eventually(made.works)
    yield made
    made.fill(250)
    made.heal()


@pytest.mark.proves("proposal-035.factor-source", "proposal-035.task", "proposal-035.policy", "mission.roles")
def test_they_work_as_they_are_written(world: World) -> None:
    world.check_serves("known", QUOTA * LEFT)
    world.fill(500)
    world.check_serves("known", QUOTA * 0.5)
    world.fill(1000)
    world.check_limit("known", FLOOR)
    world.fill(250)
    world.check_serves("known", QUOTA * LEFT)
    before = world.runs("Outsider"), world.runs("Neighbour")
    eventually(lambda: world.runs("Outsider") > before[0] and world.runs("Neighbour") > before[1])
    assert world.errors("source") == world.errors("task") == 0
    world.node.wait_for_log("thread leaves of plugin neighbour ended")
    eventually(lambda: gauge(world.node, "Plugin,name=neighbour", "Errors") == 1)


@pytest.mark.proves("proposal-035.supplier", "proposal-035.static", "mission.entry-points")
def test_a_rule_that_is_installed_while_the_broker_runs_applies_without_a_restart(world: World) -> None:
    distribute(world.folder, "late", {"quotahost.suppliers": {"late": "late:Late"}}, {"late": LATE})
    alter_broker_config(world.node, {PREFIX + "supplier": "late,static"})
    world.check_serves("late-client", 7_000_000 * LEFT)
    world.check_serves("known", OF_STATIC * LEFT)
    alter_broker_config(world.node, {PREFIX + "supplier": None})
    world.check_serves("late-client", QUOTA * LEFT)


@pytest.mark.proves("proposal-035.fallback", "faults.plugin-error")
@pytest.mark.parametrize("plugin", ["source", POLICY, "task"])
def test_each_failure_is_counted_logged_once_and_ends_in_the_stated_fallback(world: World, plugin: str) -> None:
    start = world.node.log.end()
    for mood, error in ERRORS.items():
        world.tell(plugin, mood)
        before = world.errors(plugin)
        eventually(lambda b=before: world.errors(plugin) > b + 3, what=f"the failures of {plugin} ({mood}) are counted")
        if error:
            world.node.wait_for_log(f"^  {error}", start=start)
            assert world.node.log_text(start).count(f"\n  {error}") == 1, "the error is logged once"
    if plugin in ASKED:
        eventually(lambda: gauge(world.node, "Factor", "Unknown") == 1, what="after validity, fallback.action applies")
        world.node.wait_for_log(f"plugin outsider failed in {METHODS[plugin]}".replace("()", r"\(\)"), start=start)
        world.node.wait_for_log("the last factor stays in force for validity", start=start)
    else:
        eventually(world.works)
        world.node.wait_for_log("it runs again after its period", start=start)
    world.check_serves("known", QUOTA if plugin in ASKED else QUOTA * LEFT)
    check_serves(world.node, f"new-while-{plugin}-fails")
    runs = world.runs("Outsider")
    world.heal()
    eventually(lambda: world.works() and world.runs("Outsider") > runs + 1)
    eventually(lambda: gauge(world.node, "Factor", "Unknown") == 0)
    world.node.wait_for_log("works again in", start=start)
    eventually(lambda: has_own_quota(world.node, ANYONE, f"new-while-{plugin}-fails"))


@pytest.mark.proves("proposal-035.supplier", "faults.plugin-error")
def test_each_failure_leaves_its_client_among_the_newcomers_until_the_supplier_answers(world: World) -> None:
    clients = {mood: f"faulty-{mood}" for mood in (*ERRORS, "zero", "long-group")}
    for mood, client_id in clients.items():
        world.tell("supplier", mood)
        before = world.errors("supplier")
        introduce_clients(world.node, [client_id])
        eventually(lambda b=before: world.errors("supplier") > b, what=f"the failure {mood} is counted")
        assert quota_now(world.node, ANYONE, client_id).newcomer
    whose = "its clients, such as user ANONYMOUS, client-id faulty-raise,"
    world.node.wait_for_log(rf"plugin outsider failed in quota\(\); {whose}")
    check_serves(world.node, clients["raise"])
    world.heal()
    for client_id in clients.values():
        world.check_limit(client_id, QUOTA * LEFT)


@KILLED
@pytest.mark.proves("faults.hang")
def test_a_supplier_that_hangs_lets_the_lease_expire_and_disturbs_no_client(world: World) -> None:
    node, start, before = world.node, world.node.log.end(), world.fallbacks()
    world.check_serves("settled", QUOTA * LEFT)
    world.tell("supplier", "hang")
    check_serves(node, "faulty-hang")
    eventually(lambda: gauge(node, "Lease", "Expired") == 1)
    applied = world.fallbacks()
    assert applied > before
    world.check_serves("settled", QUOTA)
    check_serves(node, "never-seen-before")
    node.wait_for_log("fallback.action=OPEN holds", start=start)
    node.wait_for_log(
        r"host thread has taken no work for \d+ s; its stack:(\n  .*)+outsider\.py\", line \d+, in quota", start=start
    )
    code, text = explain_client(node, ANYONE, "settled")  # Java answers without Python
    assert (code, "fallback.action=OPEN holds" in text) == (0, True)
    assert world.fallbacks() == applied, "the fallback applies once, however long the supplier hangs"
    world.heal()
    node.wait_for_log("The Python host answers again", start=start)
    eventually(lambda: has_own_quota(node, ANYONE, "never-seen-before"))


@KILLED
def test_with_pause_as_fallback_a_silent_host_slows_producers_to_the_floor_until_it_answers(world: World) -> None:
    node, start = world.node, world.node.log.end()
    world.check_serves("settled", QUOTA * LEFT)
    with changed(node, {"fallback.action": "PAUSE"}):
        node.wait_for_log("reconfigured", start=start)
        world.tell("supplier", "hang")
        introduce_clients(node, ["faulty-pause"])
        world.check_limit("settled", FLOOR)
        assert quota_now(node, ANYONE, "settled", "FETCH").limit == QUOTA
        eventually(lambda: gauge(node, "Factor", "LackOfData") == 1, what="Java reports LackOfData without Python")
        world.heal()
        eventually(lambda: gauge(node, "Factor", "LackOfData") == 0)
        world.check_serves("settled", QUOTA * LEFT)


@pytest.mark.proves("proposal-035.task", "faults.task-hang")
def test_a_task_that_hangs_delays_neither_the_host_nor_another_task(world: World) -> None:
    world.tell("task", "hang")
    eventually((world.folder / "task.hangs").exists)
    before = world.runs("Neighbour")
    eventually(lambda: world.runs("Neighbour") > before + 5)
    stuck = world.runs("Outsider")  # by now Java has the runs that Python counted before
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
    eventually(lambda: world.fallbacks() > applied, what="Java applies the fallback without Python")
    check_serves(world.node, "known")
    check_serves(world.node, "new-while-the-lock-is-held")
    eventually(world.works)
    eventually(lambda: has_own_quota(world.node, ANYONE, "new-while-the-lock-is-held"))


@pytest.mark.proves("faults.names")
def test_a_flood_of_names_fills_the_table_and_no_more(world: World) -> None:
    world.check_serves("settled", QUOTA * LEFT)
    assert introduce_clients(world.node, (f"flood-{n}" for n in range(20_000))) == 20_000
    assert gauge(world.node, "QuotaTable", "Clients") <= 1000
    assert gauge(world.node, "QuotaTable", "Unadmitted") > 0
    world.check_serves("settled", QUOTA * LEFT)
    check_serves(world.node, "one-too-many")
    assert quota_now(world.node, ANYONE, "one-too-many").newcomer
    world.node.wait_for_log(f"The quota table is full .{PREFIX}clients.max=1000")


@pytest.mark.proves("faults.orphan")
def test_a_broker_in_which_all_of_them_hang_stops_cleanly(world: World) -> None:
    # A host in a process of its own was killed when it was silent for longer than validity.
    assert IN_CHILD or gauge(world.node, "Host", "Restarts") == 0, "no failure has ended the host"
    for plugin in METHODS:
        world.tell(plugin, "hang")
    eventually(lambda: gauge(world.node, "Lease", "Expired") == 1)
    assert world.node.stop() == 143
    assert (world.node.data_dirs[0] / ".kafka_cleanshutdown").exists()
