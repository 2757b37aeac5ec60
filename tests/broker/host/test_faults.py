"""A supplier fails in every possible way; clients produce and fetch on, and the stated fallback applies."""

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
from tests.broker.support.node import PLUGINS, callback_node, check_serves
from tests.broker.support.seen import ANYONE, gauge, has_own_quota

VALIDITY = "5s"  # a busy machine may stall for some of it
KILLED = pytest.mark.skipif(IN_CHILD, reason="a process of its own is killed then, which test_child.py sees")
MODES = ("raise", "exit", "interrupt", "nan", "negative", "zero", "text", "bad-quota", "long-group")


@pytest.fixture(scope="module")
def fault(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("fault") / "mode"
    file.write_text("fine")
    return file


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, fault: Path) -> Iterator[KafkaNode]:
    settings = {
        "supplier": "faulty",
        "validity": VALIDITY,
        "newcomers.produce": "20M",
        "clients.max": "1000",
        "max.mute": "30d",  # the factor falls in one step
    }
    env = {"PYTHONPATH": str(PLUGINS), "FAULT": str(fault)}
    with callback_node(tmp_path_factory.mktemp("node"), settings, env=env, properties=dict(QUICK_QUOTAS)) as node:
        create_topic(node, "t")
        fill_topic(node.client_config(client_id="filler"), "t", 5_000_000)
        yield node


@pytest.fixture(autouse=True)
def _heal(node: KafkaNode, fault: Path) -> Iterator[None]:
    yield
    fault.write_text("fine")
    eventually(lambda: gauge(node, "Lease", "Expired") == 0)


def settle(node: KafkaNode) -> None:
    """Has the client ``settled`` produce and fetch, and waits until its quota is known."""
    check_serves(node, "settled")
    eventually(lambda: has_own_quota(node, ANYONE, "settled"))


def change(node: KafkaNode, name: str, value: str | None) -> None:
    """Changes a property and waits until the host goes by it."""
    start = node.log.end()
    alter_broker_config(node, {PREFIX + name: value})
    node.wait_for_log("reconfigured", start=start)


@pytest.mark.proves("proposal-035.supplier", "faults.plugin-error")
def test_each_failure_leaves_its_client_among_the_newcomers_until_the_supplier_is_asked_again_and_answers(
    node: KafkaNode, fault: Path
) -> None:
    for mode in MODES:
        fault.write_text(mode)
        before = gauge(node, "Plugin,name=faulty", "Errors")
        introduce_clients(node, [f"faulty-{mode}"])
        eventually(lambda b=before: gauge(node, "Plugin,name=faulty", "Errors") > b, what=mode)
        assert quota_now(node, ANYONE, f"faulty-{mode}").newcomer
    node.wait_for_log(
        r"plugin faulty failed in quota\(\); its clients, such as user ANONYMOUS, client-id faulty-raise,"
    )
    assert gauge(node, "Host", "Restarts") == 0
    check_serves(node, f"faulty-{MODES[0]}")
    fault.write_text("fine")
    for mode in MODES:
        eventually(lambda m=mode: quota_now(node, ANYONE, f"faulty-{m}").limit == 5e6, what=mode)


@KILLED
@pytest.mark.proves("faults.hang")
def test_a_supplier_that_hangs_lets_the_lease_expire_and_disturbs_no_client(node: KafkaNode, fault: Path) -> None:
    settle(node)
    fault.write_text("sleep")
    start = node.log.end()
    before = gauge(node, "Lease", "FallbackApplied")
    check_serves(node, "faulty-sleep")
    eventually(lambda: gauge(node, "Lease", "Expired") == 1)
    applied = gauge(node, "Lease", "FallbackApplied")
    assert applied > before
    check_serves(node, "settled")
    check_serves(node, "never-seen-before")
    assert quota_now(node, ANYONE, "settled").limit == 5e6
    node.wait_for_log("fallback.action=OPEN holds", start=start)
    node.wait_for_log(
        r"the host has not looked for work for \d+ s; it is here:[^[]*faulty\.py\", line \d+, in quota", start=start
    )
    code, text = explain_client(node, ANYONE, "settled")  # Java alone answers
    assert code == 0
    assert "fallback.action=OPEN holds" in text
    assert gauge(node, "Lease", "FallbackApplied") == applied, "once, however long it hangs"
    fault.write_text("fine")
    node.wait_for_log("The Python host answers again", start=start)
    eventually(lambda: has_own_quota(node, ANYONE, "never-seen-before"))


@KILLED
def test_with_pause_as_fallback_a_silent_host_slows_producers_to_the_floor_until_it_answers(
    node: KafkaNode, fault: Path
) -> None:
    settle(node)
    change(node, "fallback.action", "PAUSE")
    fault.write_text("sleep")
    introduce_clients(node, ["faulty-pause"])
    eventually(lambda: quota_now(node, ANYONE, "settled").limit == 35_000)
    assert quota_now(node, ANYONE, "settled", "FETCH").limit == 5e6
    eventually(lambda: gauge(node, "Factor", "LackOfData") == 1, what="Python can't set it now")
    fault.write_text("fine")
    eventually(lambda: quota_now(node, ANYONE, "settled").limit == 5e6)
    eventually(lambda: gauge(node, "Factor", "LackOfData") == 0)
    change(node, "fallback.action", None)
    check_serves(node, "settled")


@pytest.mark.proves("faults.names")
def test_a_flood_of_names_fills_the_table_and_no_more(node: KafkaNode) -> None:
    settle(node)
    assert introduce_clients(node, (f"flood-{n}" for n in range(20_000))) == 20_000
    assert gauge(node, "QuotaTable", "Clients") <= 1000
    assert gauge(node, "QuotaTable", "Unadmitted") > 0
    assert has_own_quota(node, ANYONE, "settled")
    check_serves(node, "settled")
    check_serves(node, "one-too-many")
    assert quota_now(node, ANYONE, "one-too-many").newcomer
    node.wait_for_log(f"The quota table is full .{PREFIX}clients.max=1000")
