"""``quotahost explain`` on a running broker: which supplier gave a client its quota, and what limits the client."""

import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from harness.clients.load import QUICK_QUOTAS
from harness.clients.producer import ProducerLoad
from harness.clients.raw import introduce_clients
from harness.java.helper import HelperError
from harness.java.jmx import Jmx
from harness.kafka.admin import alter_broker_config, create_topic, set_quota
from harness.kafka.admin_socket import ask, quota_now
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, PREFIX
from harness.system.waiting import eventually
from quotahost.cli.explain.broker_socket import running
from tests.broker.support.commands import explain, explain_client, field, last_line, quotahost, top
from tests.broker.support.node import FIXED, OWN_ID, callback_node
from tests.broker.support.node import changed as changed_live
from tests.broker.support.seen import ANYONE, gauge, has_own_quota

USERS = {"alice": "a", "bob": "b", "carol": "c", "CN=d/e": "d"}
PAUSED = "PRODUCE is limited by the fence (fixed by plugin.fixed.factor=0)."


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    settings = FIXED | {"static.produce": "3M", "static.excluded.principal.name.list": "User:carol"}
    more = {"node_id": OWN_ID, "users": USERS, "properties": QUICK_QUOTAS | FENCE}
    with callback_node(tmp_path_factory.mktemp("node"), settings, **more) as node:
        create_topic(node, "t")
        set_quota(node, {"producer_byte_rate": 2e6}, user="alice")
        yield node


def fact(node: KafkaNode, user: str, label: str, client_id: str = "app") -> str:
    """The text behind this label in explain's output for one client."""
    return field(explain_client(node, user, client_id)[1], label)


def test_python_threads_that_have_answered_leave_the_jvm(node: KafkaNode) -> None:
    def threads() -> float:
        return float(Jmx(node).query("java.lang:type=Threading")["java.lang:type=Threading"]["ThreadCount"])

    before = threads()
    for _ in range(50):  # each is answered by a thread of its own
        ask(node, "retention", "t")
    eventually(lambda: threads() < before + 20)


def ends(node: KafkaNode, user: str, expected: str, client_id: str = "app") -> str:
    """Waits until explain's last line is the expected one; returns the whole text."""

    def told() -> str:
        _, text = explain_client(node, user, client_id)
        assert last_line(text) == expected
        return text

    return eventually(told)


@contextmanager
def changed(node: KafkaNode, settings: dict[str, str]) -> Iterator[None]:
    """Applies these settings for the time of a ``with`` block, and waits until the former ones are in force again."""
    with changed_live(node, settings):
        yield
    eventually(lambda: fact(node, "alice", "state") == "OPEN" and fact(node, "alice", "mode") == "enforce")


def load(node: KafkaNode, user: str, client_id: str) -> ProducerLoad:
    return ProducerLoad(node.client_config(user, client_id), "t")


def test_the_supplier_of_the_quota_that_limits_a_client_is_named_and_top_shows_who_uses_what(node: KafkaNode) -> None:
    once = ("top", "--pid", node.pid, "--once")
    with load(node, "alice", "app"), load(node, "bob", "app"):
        ends(node, "bob", "PRODUCE is limited by the client's quota of static.")
        text = ends(node, "alice", "PRODUCE is limited by the user's quota of client-quotas.")

        def held() -> tuple[dict[str, Any], list[str]]:
            """Each user's busiest row, and the printed lines of bob; raises while a stall delays one of them."""
            rows = {row["user"]: row for row in reversed(top("--pid", node.pid, "--type", "PRODUCE")["rows"])}
            assert rows["alice"]["bound_by"] == rows["bob"]["bound_by"] == "quota"
            lines = quotahost(*once, "--held", "--filter", "bob").stdout.splitlines()
            assert re.match(r"bob +app +PRODUCE +[\d.]+ MB/s +3.00 MB/s +[\d.]+ % +.*quota", lines[3])
            return rows, lines

        rows, lines = eventually(held)
        last = quotahost(*once, "--most", "1").stdout.splitlines()[-1]
        assert [top("--pid", node.pid, "--most", most)["left_out"] for most in (1, 1000)] == [True, False]
    assert field(text, "quota") == "2,000,000 bytes/s (2M), shared by user alice"
    assert field(text, "from") == "supplier client-quotas"
    assert field(text, "limit") == "2,000,000 bytes/s (2M)"
    shown = ("scope", "client_id", "quota", "address")  # the authorizer has seen the clients' addresses
    assert [rows["alice"][name] for name in shown] == ["user", "", 2e6, "127.0.0.1"]
    assert [rows["bob"][name] for name in shown] == ["client", "app", 3e6, "127.0.0.1"]
    assert lines[0].startswith(f"broker {OWN_ID} (pid {node.pid})  OPEN  factor 1  fence open")
    assert ("left out" in lines[-1], last) == (False, "less busy clients are left out")


@pytest.mark.proves("kip-13.default-quota")
def test_whom_nothing_limits_is_told_why_and_who_is_not_known(node: KafkaNode) -> None:
    introduce_clients(node, ["app"])
    eventually(lambda: has_own_quota(node, ANYONE, "app"))
    code, text = explain_client(node, ANYONE, "app", "FETCH")
    assert code == 0
    assert field(text, "quota") == "unlimited, shared by all clients without one"
    assert last_line(text) == "Nothing limits this client, as it has no limit for FETCH."
    with load(node, "carol", "app") as producer:
        eventually(lambda: producer.meter.bytes > 0)
    assert has_own_quota(node, "carol", "app")
    why = "its principal is in static.excluded.principal.name.list or exempt.principals"
    # Java exempts the client immediately, and learns the reason from Python.
    eventually(lambda: fact(node, "carol", "exempt") == why)
    assert "Nothing limits this client, as it is exempt" in explain_client(node, "carol", "app")[1]
    code, text = explain_client(node, "User:alice", "never")
    assert code == 3
    assert "the table doesn't know this client" in text
    assert "without User:" in text
    assert field(text, "quota").endswith("shared by all newcomers")


def test_a_factor_set_live_is_named_with_its_cause_also_where_there_is_no_quota(node: KafkaNode) -> None:
    with changed(node, {"plugin.fixed.factor": "0.5", "static.produce": "3M"}):
        with load(node, "alice", "app"), load(node, "bob", "app"):
            text = ends(node, "alice", "PRODUCE is limited by the factor 0.5: fixed by plugin.fixed.factor=0.5.")
        assert field(text, "state") == "THROTTLE"
        assert field(text, "quota") == "2,000,000 bytes/s (2M), shared by user alice"
        # The limit follows the factor over Kafka's windows.
        eventually(lambda: fact(node, "alice", "limit") == "1,000,000 bytes/s (1M), by the factor 0.5")
        assert field(explain_client(node, "alice", "app", "FETCH")[1], "limit") == "unlimited"
        alter_broker_config(node, {PREFIX + "static.produce": "unlimited"})
        eventually(lambda: fact(node, "bob", "quota").startswith("unlimited"))
        eventually(lambda: " bytes/s" in fact(node, "bob", "instead"), what="the former rate stands in for the quota")


def counted(node: KafkaNode, rule: str, attribute: str) -> float:
    """A count of one rule in shadow; 0 before the rule's MBean exists."""
    beans = Jmx(node).query(f"quotahost:type=Shadow,name={rule}")
    return sum(float(bean[attribute]) for bean in beans.values())


def test_a_supplier_tried_in_shadow_limits_nobody_and_tells_whom_it_would(node: KafkaNode) -> None:
    def told(label: str) -> str:
        return fact(node, "alice", label, "tried")

    with load(node, "alice", "tried"):
        with changed(node, {"shadow": "supplier.client-quotas"}):
            # The next supplier, static, is in force now.
            eventually(lambda: told("limit") == "3,000,000 bytes/s (3M)")
            would = "supplier client-quotas would give 2,000,000 bytes/s (2M), shared by user alice; uses "
            eventually(lambda: "would be delayed" in told("in shadow"))
            assert told("in shadow").startswith(would)
            assert told("from") == "supplier static"
            assert told("mode") == "enforce, except these rules in shadow: supplier.client-quotas"
            for attribute in ("Bytes", "Seconds"):
                eventually(lambda counts=attribute: counted(node, "supplier.client-quotas", counts) > 0)
            # If static is in shadow, too, no quota is in force. Kafka measures what client-quotas would limit.
            alter_broker_config(node, {PREFIX + "shadow": "supplier.client-quotas,supplier.static"})
            eventually(lambda: told("limit") == "unlimited")
            eventually(lambda: "would be delayed" in told("in shadow"))
            assert told("in shadow").startswith(would)
            with pytest.raises(HelperError, match=r"did you mean supplier\.static"):
                alter_broker_config(node, {PREFIX + "shadow": "supplier.statik"})
        ends(node, "alice", "PRODUCE is limited by the user's quota of client-quotas.", "tried")
    eventually(lambda: counted(node, "supplier.client-quotas", "Over") == 0)


def test_in_a_pause_the_fence_limits_all_clients_but_the_exempt_and_in_shadow_nobody(node: KafkaNode) -> None:
    with changed(node, {"plugin.fixed.factor": "0"}):
        ends(node, "alice", PAUSED)
        assert fact(node, "alice", "state") == "PAUSE"
        assert fact(node, "alice", "fence") == "closed: this client's produce requests are turned back"
        eventually(lambda: "by the factor" in fact(node, "alice", "limit"), what="this limit applies after the PAUSE")
        assert fact(node, "carol", "fence") == "closed; this client passes it in every state"
        alter_broker_config(node, {PREFIX + "shadow": "factor"})
        with load(node, "alice", "app") as producer:
            eventually(lambda: producer.meter.bytes > 4e6, what="the client has sent two seconds of its quota")
            _, text = explain_client(node, "alice", "app")
            assert field(text, "fence").startswith("open, as the factor is in shadow; otherwise this client's")
            assert field(text, "factor") == "0, on PRODUCE; in shadow: limits are not multiplied by it"
            risen = "2,000,000 bytes/s (2M)"
            eventually(lambda: field(explain_client(node, "alice", "app")[1], "limit") == risen)
            eventually(lambda: counted(node, "factor", "Bytes") > 1e6 and gauge(node, "Fence", "Shadowed") > 0)
        alter_broker_config(node, {PREFIX + "shadow": "all"})
        ends(node, "alice", "Nothing limits this client, as shadow=all enforces nothing.")
        alter_broker_config(node, {PREFIX + "shadow": None})
        ends(node, "alice", PAUSED)
    assert fact(node, "alice", "fence") == "open"


def test_client_ids_of_every_kind_get_their_own_quota_and_are_found(node: KafkaNode) -> None:
    names = ["", "a:b", "::", "a/b", "tab\there", 'q"uote', "back\\slash\\u0041", "ümlaut ☃ 𝄞", "nul\0byte", "\x1e"]
    names += ["<newcomers>", "x" * 200]
    introduce_clients(node, names)
    for name in names:
        eventually(lambda n=name: has_own_quota(node, ANYONE, n), what=f"{name!r} has its own quota")
        code, text = explain_client(node, ANYONE, name)
        assert (code, field(text, "from")) == (0, "supplier static"), text
    assert len({quota_now(node, ANYONE, name).client_id for name in names}) == len(names)


def test_a_user_with_a_slash_is_split_at_the_last_one_and_the_broker_is_found_by_its_id(node: KafkaNode) -> None:
    (broker,) = (each for each in running() if each.pid == node.pid)
    assert stat.S_IMODE(broker.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(broker.path.parent.stat().st_mode) == 0o700
    with load(node, "CN=d/e", "app"):
        eventually(lambda: has_own_quota(node, "CN=d/e", "app"))
    code, text = explain("--client", "CN=d/e/app", "--broker-id", OWN_ID)
    assert code == 0, text
    assert field(text, "broker") == f"{OWN_ID} (pid {node.pid})"
    assert field(text, "client").startswith("user CN=d/e, client-id app")
    assert all(each in text for each in ("PRODUCE\n", "FETCH\n", "REQUEST\n", "CONTROLLER_MUTATION\n"))
