"""``quotahost quotas`` against a real broker: what is declared is what Kafka and quotahost have."""

import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from harness.clients.load import QUICK_QUOTAS
from harness.clients.raw import introduce_clients
from harness.kafka.admin import DEFAULT, describe_quotas, set_quota
from harness.kafka.admin_socket import quota_now
from harness.kafka.node import KafkaNode
from harness.plugin import PREFIX, ROOT
from harness.system.waiting import eventually
from quotahost.cli.main import app
from quotahost.cli.quotas.cluster import cluster_at
from quotahost.cli.quotas.files import in_yaml, read_declared
from quotahost.cli.quotas.plan import Entity
from quotahost.kafka.commands import CompactedTopic
from quotahost.model import DEFAULT as CLIENT_DEFAULT
from tests.broker.support.commands import connect_as, quotahost
from tests.broker.support.node import callback_node, changed
from tests.broker.support.quotas import QUOTAS as TOPIC
from tests.broker.support.seen import ANYONE, gauge, limit_of

EXAMPLE: Final = ROOT / "conf/quotas.yaml"
Run = Callable[..., str]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    settings = {"supplier": "cluster-quota,client-quotas"}
    directory = tmp_path_factory.mktemp("node")
    with callback_node(directory, settings, users={"root": "s3cret"}, properties=dict(QUICK_QUOTAS)) as node:
        yield node


@pytest.fixture(scope="module")
def client(node: KafkaNode, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return connect_as(node, "root", tmp_path_factory.mktemp("client"))


@pytest.fixture(autouse=True)
def run(client: list[str], tmp_path: Path) -> Iterator[Run]:
    """Runs a command that must end with this code, and returns what it prints; removes all quotas in the end."""

    def run(code: int, *arguments: object) -> str:
        result = quotahost("quotas", *arguments, *client)
        assert result.exit_code == code, result.output
        return result.output

    yield run
    (tmp_path / "nothing.yaml").write_text("quotas: []\ncluster-quotas: []\nprune: true\n")
    run(0, "apply", "--yes", tmp_path / "nothing.yaml")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "quotas.yaml"


@pytest.fixture
def apply(run: Run, file: Path) -> Run:
    """Runs ``apply`` with a file of this text, and returns what it prints; takes options, too."""

    def apply(text: str, *options: str) -> str:
        file.write_text(text, encoding="utf-8")
        return run(0, "apply", "--yes", file, *options)

    return apply


def test_the_example_is_applied_as_it_stands_and_the_second_time_changes_nothing(
    node: KafkaNode, run: Run, file: Path
) -> None:
    planned = run(0, "plan", EXAMPLE)
    assert describe_quotas(node) == []
    assert "Plan: 15 to add, 0 to change, 0 to remove." in planned
    assert "20,000,000 bytes/s (20M)" in planned
    run(1, "drift", EXAMPLE)
    assert "Applied 15 of 15 changes." in run(0, "apply", "--yes", EXAMPLE)
    found = {tuple(sorted(entity.items())): rates for entity, rates in describe_quotas(node)}
    assert found[("user", "billing"),] == {"producer_byte_rate": 20e6, "consumer_byte_rate": 40e6}
    assert found[("client-id", DEFAULT), ("user", "billing")] == {"producer_byte_rate": 10e6}
    assert found[("ip", DEFAULT),] == {"connection_creation_rate": 100}
    assert len(found) == 7
    assert "Nothing to do" in run(0, "apply", EXAMPLE)  # it doesn't ask, as there is nothing to do
    assert run(0, "drift", EXAMPLE) == "\nNo drift.\n"
    run(0, "export", "-o", file)
    assert read_declared([file]).quotas == read_declared([EXAMPLE]).quotas


def test_what_is_applied_is_enforced_and_changed_and_removed_live(node: KafkaNode, apply: Run) -> None:
    introduce_clients(node, ["as-code", "live"])
    for rate in ("3M", "2M"):
        apply(
            f"quotas: [{{client-id: as-code, producer_byte_rate: {rate}}}]\n"
            f"cluster-quotas: [{{client-id: live, produce: {rate}}}]"
        )
        for client_id in ("as-code", "live"):
            eventually(lambda r=float(rate[0]) * 1e6, c=client_id: limit_of(node, ANYONE, c) == r)
    assert "Applied 1 of 1 changes." in apply("cluster-quotas: []", "--prune")
    eventually(lambda: quota_now(node, ANYONE, "live").limit is None)


@pytest.mark.proves("faults.two-operators")
def test_two_operators_at_once_lose_nothing(client: list[str], run: Run, tmp_path: Path) -> None:
    files = [tmp_path / f"{n}.yaml" for n in range(4)]
    for n, file in enumerate(files):
        entries = ", ".join(f"{{user: u{n}-{m}, produce: {m + 1}M}}" for m in range(50))
        file.write_text(f"cluster-quotas: [{entries}]")
    command = [sys.executable, "-m", "quotahost.cli", "quotas", "apply", "--yes", *client]
    with ThreadPoolExecutor(len(files)) as pool:
        done = pool.map(lambda file: subprocess.run([*command, file], capture_output=True, timeout=180), files)
        assert [(each.returncode, each.stderr) for each in done] == [(0, b"")] * 4
    for file in files:
        run(0, "drift", file)


def test_the_properties_of_earlier_versions_are_taken_over(run: Run, file: Path) -> None:
    properties = file.with_name("server.properties")
    old = PREFIX + "plugin.cluster-quota."
    properties.write_text(
        f"node.id=1\n{old}produce.default=3M\n{old}produce.users=alice:10M\n{old}fetch.clients=alice/:unlimited\n"
    )
    assert "Applied 3 of 3 changes." in run(0, "import-properties", "--yes", properties)
    run(0, "export", "-o", file)
    assert read_declared([file]).quotas == {
        Entity(CLIENT_DEFAULT, in_cluster=True): {"produce": 3e6},
        Entity("alice", in_cluster=True): {"produce": 10e6},
        Entity("alice", "", in_cluster=True): {"fetch": math.inf},
    }
    assert "Nothing to do" in run(0, "import-properties", "--yes", properties)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"cluster-quotas: [{{user: {3000 * 'x'}, produce: 1M}}, {{user: alice, produce: 1M}}]",
         "brokers would refuse it: the names have 3,000 bytes, more than 2,048"),
        ("quotas: [{ip: no.such.host.invalid, connection_creation_rate: 3}, {user: alice, producer_byte_rate: 1M}]",
         "failed ip no.such.host.invalid: no.such.host.invalid is not a valid IP"),
        *((f"quotas: [{{user: bob, {wrong}}}, {{user: alice, producer_byte_rate: 1M}}]", "failed user bob: ")
          for wrong in ("producer_byte_rate: 1.5", "connection_creation_rate: 3")),
    ],
    ids=["by brokers", "by the controller", "a fraction", "a key of others"],
)  # fmt: skip
def test_what_is_refused_is_named_and_the_rest_is_done(run: Run, file: Path, text: str, told: str) -> None:
    file.write_text(text)
    assert told in run(0, "plan", file)
    applied = run(1, "apply", "--yes", file)
    assert told in applied
    assert "Applied 1 of 2 changes. Not applied:" in applied
    assert "Plan: 1 to add, 0 to change, 0 to remove." in run(0, "plan", file)


def test_a_record_that_no_broker_takes_is_named_and_what_was_before_stays(
    node: KafkaNode, run: Run, apply: Run, file: Path
) -> None:
    apply("cluster-quotas: [{client-id: kept, produce: 3M}]")
    introduce_clients(node, ["kept"])
    eventually(lambda: limit_of(node, ANYONE, "kept") == 3e6)
    topic = CompactedTopic(node.client_config("root"), TOPIC, "test")
    assert topic.write({b"clients/kept": b'{"version":1,"produce":-1}', b"users/\x1b[2J": b"{}"}) == {}
    eventually(lambda: gauge(node, "Refused,name=schema", "Records") >= 1)
    assert limit_of(node, ANYONE, "kept") == 3e6
    drift = run(1, "drift", file)
    assert "\x1b" not in drift
    assert "brokers refuse the record b'clients/kept' of __quotahost_quotas: produce" in drift
    assert "Applied 2 of 2 changes." in run(0, "apply", "--yes", file)
    drift = run(0, "drift", file)
    assert ("b'users/" in drift, "kept" in drift) == (True, False)
    assert topic.write({b"users/\x1b[2J": None}) == {}


def test_what_others_changed_is_drift_and_what_they_added_stays_until_it_is_pruned(
    node: KafkaNode, run: Run, apply: Run, file: Path
) -> None:
    apply("quotas: [{user: alice, producer_byte_rate: 1M}]")
    set_quota(node, {"producer_byte_rate": 2e6, "request_percentage": 50}, user="alice")
    set_quota(node, {"producer_byte_rate": 7e6}, user="bob")
    eventually(lambda: len(describe_quotas(node)) == 2)
    drift = run(1, "drift", file)
    assert "Drift: 2 quotas differ." in drift
    assert re.search(r"change +user alice +producer_byte_rate +2,000,000 .* 1,000,000", drift)
    assert re.search(r"remove +user alice +request_percentage +50 % +-> +none", drift)
    assert re.search(r"Not managed.*\n.*\nuser bob +producer_byte_rate", drift)
    run(0, "apply", "--yes", file)
    assert {entity["user"]: rates for entity, rates in describe_quotas(node)} == {
        "alice": {"producer_byte_rate": 1e6},
        "bob": {"producer_byte_rate": 7e6},
    }
    run(1, "drift", file, "--prune")
    run(0, "apply", "--yes", "--prune", file)
    assert [entity for entity, _ in describe_quotas(node)] == [{"user": "alice"}]


def test_nothing_is_changed_without_a_yes(node: KafkaNode, client: list[str], file: Path) -> None:
    file.write_text("quotas: [{user: alice, producer_byte_rate: 1M}]")
    refused = CliRunner().invoke(app, ["quotas", "apply", str(file), *client], input="n\n")
    assert (refused.exit_code, describe_quotas(node)) == (1, [])


def test_it_says_where_the_brokers_suppliers_enforce_other_quotas(node: KafkaNode, run: Run, file: Path) -> None:
    file.write_text("quotas: [{user: alice, producer_byte_rate: 1M}]")
    before = len(node.log_text())
    for each in (file, EXAMPLE):
        assert "enforced" not in run(0, "plan", each)
    assert "ERROR" not in node.log_text()[before:]
    with changed(node, {"supplier": "static", "shadow": "factor"}):
        words = "broker 1: Kafka's client quotas are not enforced; add client-quotas to"
        eventually(lambda: words in run(0, "plan", file))
        words = "broker 1: cluster-wide quotas are not enforced; add cluster-quota to client.quota.callback.supplier"
        assert words in run(0, "plan", EXAMPLE)
    eventually(lambda: "enforced" not in run(0, "plan", file))


def test_wrong_credentials_end_with_2_and_are_not_shown(client: list[str], run: Run, file: Path) -> None:
    file.write_text("quotas: []")
    wrong = file.with_name("wrong.properties")
    wrong.write_text(Path(client[-1]).read_text().replace("s3cret", "wr0ng"))
    result = quotahost("quotas", "drift", file, *client[:-1], wrong)
    told = "doesn't answer with these credentials: it refuses the user, the password or the mechanism"
    assert (result.exit_code, told in result.output, "wr0ng" in result.output) == (2, True, False)


def test_names_and_rates_of_every_kind_are_read_back(node: KafkaNode, file: Path) -> None:
    names = ("<default>", "%", '"', "ä ö", "a,b=c/d\\", "\x00", "..")
    quotas = {Entity(name): {"producer_byte_rate": 1.0} for name in names}
    quotas |= {
        Entity("<default>", CLIENT_DEFAULT): {"request_percentage": 1 / 3},
        Entity(ip="::1"): {"connection_creation_rate": 1.0},
    }
    quotas |= {Entity(name, in_cluster=True): {"produce": 1 / 3, "fetch": math.inf} for name in names}
    file.write_text(in_yaml(quotas))
    declared = read_declared([file])
    with cluster_at(node.bootstrap, None, TOPIC) as connected:
        planned = connected.compare(declared, prune=True)
        assert connected.change(planned) == {}
        assert connected.not_made(planned, {}) == []
        assert {**connected.client_quotas(), **connected.recorded()} == declared.quotas == quotas
        assert connected.compare(declared, prune=True).changes == ()


# The last one, as it leaves many records in the topic until Kafka compacts it.
@pytest.mark.long
def test_a_hundred_thousand_entities_are_applied_followed_asked_for_and_removed(
    node: KafkaNode, run: Run, apply: Run, file: Path
) -> None:
    many = 100_000
    quotas = {Entity(f"user-{n:06}", in_cluster=True): {"produce": 1e6 + n} for n in range(many)}
    quotas[Entity(None, "many", in_cluster=True)] = {"produce": 5e6}
    file.write_text(in_yaml(quotas))
    assert f"Plan: {many + 1} to add, 0 to change, 0 to remove." in run(0, "plan", file)
    run(0, "apply", "--yes", file)
    eventually(lambda: gauge(node, "ClusterQuotas", "Entities") == many + 1)
    introduce_clients(node, ["many"])
    eventually(lambda: limit_of(node, ANYONE, "many") == 5e6)
    run(0, "drift", file)
    exported = file.with_name("exported.yaml")
    run(0, "export", "-o", exported)
    assert exported.read_text() == file.read_text()
    apply("cluster-quotas: []", "--prune")
    eventually(lambda: gauge(node, "ClusterQuotas", "Entities") == 0)
