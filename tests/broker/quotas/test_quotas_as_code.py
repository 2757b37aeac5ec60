"""``quotahost quotas`` on a real broker: Kafka and quotahost get the quotas that a file declares."""

import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner, Result

from harness.clients.load import QUICK_QUOTAS
from harness.clients.raw import introduce_clients
from harness.kafka.admin import DEFAULT, describe_quotas, set_quota
from harness.kafka.admin_socket import quota_now
from harness.kafka.node import KafkaNode
from harness.plugin import PREFIX, ROOT
from harness.system.waiting import eventually
from quotahost.cli.main import app
from quotahost.cli.quotas.files import in_yaml, read_declared
from quotahost.cli.quotas.plan import Entity
from quotahost.kafka.commands import CompactedTopic
from quotahost.model import DEFAULT as CLIENT_DEFAULT
from tests.broker.support.commands import connect_as, quotahost
from tests.broker.support.node import callback_node, changed
from tests.broker.support.quotas import QUOTAS as TOPIC
from tests.broker.support.seen import ANYONE, gauge, limit_of

EXAMPLE: Final = ROOT / "conf/quotas.yaml"
NOTHING: Final = "quotas: []\ncluster-quotas: []\nprune: true\n"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    settings = {"supplier": "cluster-quota,client-quotas"}
    directory = tmp_path_factory.mktemp("node")
    with callback_node(directory, settings, users={"root": "s3cret"}, properties=dict(QUICK_QUOTAS)) as node:
        yield node


@pytest.fixture(scope="module")
def client(node: KafkaNode, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return connect_as(node, "root", tmp_path_factory.mktemp("client"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "quotas.yaml"


def run(client: list[str], *arguments: object) -> Result:
    return quotahost("quotas", *arguments, *client)


def applied(client: list[str], file: Path, text: str, *options: str) -> Result:
    file.write_text(text, encoding="utf-8")
    return run(client, "apply", "--yes", file, *options)


@pytest.fixture(autouse=True)
def _empty(client: list[str], tmp_path: Path) -> Iterator[None]:
    yield
    assert applied(client, tmp_path / "nothing.yaml", NOTHING).exit_code == 0


def test_the_example_is_applied_and_again_changes_nothing(node: KafkaNode, client: list[str], file: Path) -> None:
    planned = run(client, "plan", EXAMPLE)
    assert (planned.exit_code, describe_quotas(node)) == (0, [])
    assert "Plan: 15 to add, 0 to change, 0 to remove." in planned.output
    assert "20,000,000 bytes/s (20M)" in planned.output
    assert run(client, "drift", EXAMPLE).exit_code == 1
    refused = CliRunner().invoke(app, ["quotas", "apply", str(EXAMPLE), *client], input="n\n")
    assert (refused.exit_code, describe_quotas(node)) == (1, []), "apply changes nothing without a yes"
    first = run(client, "apply", "--yes", EXAMPLE)
    assert (first.exit_code, "Applied 15 of 15 changes." in first.output) == (0, True)
    found = {tuple(sorted(entity.items())): rates for entity, rates in describe_quotas(node)}
    assert found[("user", "billing"),] == {"producer_byte_rate": 20e6, "consumer_byte_rate": 40e6}
    assert found[("client-id", DEFAULT), ("user", "billing")] == {"producer_byte_rate": 10e6}
    assert found[("ip", DEFAULT),] == {"connection_creation_rate": 100}
    assert len(found) == 7
    second = run(client, "apply", EXAMPLE)  # no question, as there is nothing to do
    assert (second.exit_code, "Nothing to do" in second.output) == (0, True)
    drift = run(client, "drift", EXAMPLE)
    assert (drift.exit_code, drift.output) == (0, "\nNo drift.\n")
    assert run(client, "export", "-o", file).exit_code == 0
    assert read_declared([file]).quotas == read_declared([EXAMPLE]).quotas


def test_what_is_applied_is_enforced_changed_and_removed_live(node: KafkaNode, client: list[str], file: Path) -> None:
    introduce_clients(node, ["as-code", "live"])
    for rate in ("3M", "2M"):
        text = f"quotas: [{{client-id: as-code, producer_byte_rate: {rate}}}]\n"
        text += f"cluster-quotas: [{{client-id: live, produce: {rate}}}]"
        assert applied(client, file, text).exit_code == 0
        for client_id in ("as-code", "live"):
            eventually(lambda r=float(rate[0]) * 1e6, c=client_id: limit_of(node, ANYONE, c) == r)
    removed = applied(client, file, "cluster-quotas: []", "--prune")
    assert (removed.exit_code, "Applied 1 of 1 changes." in removed.output) == (0, True)
    eventually(lambda: quota_now(node, ANYONE, "live").limit is None)


@pytest.mark.proves("faults.two-operators")
def test_two_operators_at_once_lose_nothing(client: list[str], tmp_path: Path) -> None:
    files = [tmp_path / f"{n}.yaml" for n in range(4)]
    for n, file in enumerate(files):
        entries = ", ".join(f"{{user: u{n}-{m}, produce: {m + 1}M}}" for m in range(50))
        file.write_text(f"cluster-quotas: [{entries}]")
    command = [sys.executable, "-m", "quotahost", "quotas", "apply", "--yes", *client]
    at_once = [subprocess.Popen([*command, file], stderr=subprocess.PIPE, text=True) for file in files]
    told = [operator.communicate(timeout=180)[1] for operator in at_once]
    assert [operator.returncode for operator in at_once] == [0] * 4, told
    for file in files:
        assert run(client, "drift", file).exit_code == 0


def test_the_properties_of_earlier_versions_are_taken_over(client: list[str], file: Path) -> None:
    properties = file.with_name("server.properties")
    old = PREFIX + "plugin.cluster-quota."
    properties.write_text(rf"""
node.id=1
{old}produce.default=3M
{old}produce.users=alice:10M,tenant\\:a:2M
{old}produce.client-ids=app:3M
{old}produce.clients=a\\/b/c\\/d:5M
{old}fetch.clients=alice/:unlimited
""")
    taken = run(client, "import-properties", "--yes", properties)
    assert (taken.exit_code, "Applied 6 of 6 changes." in taken.output) == (0, True)
    assert run(client, "export", "-o", file).exit_code == 0
    assert read_declared([file]).quotas == {
        Entity(CLIENT_DEFAULT, in_cluster=True): {"produce": 3e6},
        Entity("alice", in_cluster=True): {"produce": 10e6},
        Entity("tenant:a", in_cluster=True): {"produce": 2e6},
        Entity(None, "app", in_cluster=True): {"produce": 3e6},
        Entity("a/b", "c/d", in_cluster=True): {"produce": 5e6},
        Entity("alice", "", in_cluster=True): {"fetch": math.inf},
    }
    assert "Nothing to do" in run(client, "import-properties", "--yes", properties).output


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
    ids=["by brokers", "by the controller", "a fraction", "a quota for IPs only"],
)  # fmt: skip
def test_what_is_refused_is_named_and_the_rest_is_done(client: list[str], file: Path, text: str, told: str) -> None:
    file.write_text(text)
    assert told in run(client, "plan", file).output
    result = run(client, "apply", "--yes", file)
    assert (result.exit_code, told in result.output) == (1, True)
    assert "Applied 1 of 2 changes. Not applied:" in result.output
    assert "Plan: 1 to add, 0 to change, 0 to remove." in run(client, "plan", file).output


def test_what_files_declare_overwrites_refused_records_others_go_by_word_alone(
    node: KafkaNode, client: list[str], file: Path
) -> None:
    assert applied(client, file, "cluster-quotas: [{client-id: kept, produce: 3M}]").exit_code == 0
    introduce_clients(node, ["kept"])
    eventually(lambda: limit_of(node, ANYONE, "kept") == 3e6)
    topic = CompactedTopic(node.client_config("root"), TOPIC, "test")
    later = {b"users/\x1b[2J": b"{}", b"users/alice": b'{"version":2,"produce":1}'}
    assert topic.write({b"clients/kept": b'{"version":1,"produce":-1}', **later}) == {}
    eventually(lambda: gauge(node, "Refused,name=schema", "Records") >= 1)
    assert limit_of(node, ANYONE, "kept") == 3e6
    drift = run(client, "drift", file)
    assert (drift.exit_code, "\x1b" in drift.output) == (1, False)
    assert "brokers refuse the record b'clients/kept' of __quotahost_quotas: produce" in drift.output
    assert re.search(r"remove +record b'clients/kept' +refused +schema +-> +none", drift.output)
    assert "Applied 2 of 2 changes." in run(client, "apply", "--yes", file).output
    drift = run(client, "drift", "--prune", file)
    assert (drift.exit_code, "b'users/" in drift.output, "kept" in drift.output) == (0, True, False)
    # The plan shows that apply would remove a record of a later version.
    file.write_text("cluster-quotas: [{user: alice, produce: 5}, {client-id: kept, produce: 3M}]")
    removed = r"remove +record b'users/alice' +refused +version +-> +none"
    planned = run(client, "plan", file)
    assert re.search(removed, planned.output)
    assert "Plan: 1 to add, 0 to change, 1 to remove." in planned.output
    file.write_text("cluster-quotas: [{client-id: kept, produce: 3M}]")
    planned = run(client, "plan", "--prune-refused", file)
    assert (re.search(removed, planned.output) is not None, "\x1b" in planned.output) == (True, False)
    assert "Applied 2 of 2 changes." in run(client, "apply", "--yes", "--prune-refused", file).output
    assert run(client, "drift", file).output == "\nNo drift.\n"


def test_what_others_changed_is_drift_and_what_they_added_stays_until_it_is_pruned(
    node: KafkaNode, client: list[str], file: Path
) -> None:
    assert applied(client, file, "quotas: [{user: alice, producer_byte_rate: 1M}]").exit_code == 0
    set_quota(node, {"producer_byte_rate": 2e6, "request_percentage": 50}, user="alice")
    set_quota(node, {"producer_byte_rate": 7e6}, user="bob")
    eventually(lambda: len(describe_quotas(node)) == 2)
    drift = run(client, "drift", file)
    assert (drift.exit_code, "Drift: 2 quotas differ." in drift.output) == (1, True)
    assert re.search(r"change +user alice +producer_byte_rate +2,000,000 .* 1,000,000", drift.output)
    assert re.search(r"remove +user alice +request_percentage +50 % +-> +none", drift.output)
    assert re.search(r"Not managed.*\n.*\nuser bob +producer_byte_rate", drift.output)
    assert run(client, "apply", "--yes", file).exit_code == 0
    assert {entity["user"]: rates for entity, rates in describe_quotas(node)} == {
        "alice": {"producer_byte_rate": 1e6},
        "bob": {"producer_byte_rate": 7e6},
    }
    assert run(client, "drift", file, "--prune").exit_code == 1
    assert run(client, "apply", "--yes", "--prune", file).exit_code == 0
    assert [entity for entity, _ in describe_quotas(node)] == [{"user": "alice"}]


def test_it_says_where_brokers_enforce_other_quotas(node: KafkaNode, client: list[str], file: Path) -> None:
    file.write_text("quotas: [{user: alice, producer_byte_rate: 1M}]")
    before = len(node.log_text())
    for each in (file, EXAMPLE):
        assert "enforced" not in run(client, "plan", each).output
    assert "ERROR" not in node.log_text()[before:]
    with changed(node, {"supplier": "static", "shadow": "factor"}):
        words = "broker 1: Kafka's client quotas are not enforced; add client-quotas to"
        eventually(lambda: words in run(client, "plan", file).output)
        words = "broker 1: cluster-wide quotas are not enforced; add cluster-quota to client.quota.callback.supplier"
        assert words in run(client, "plan", EXAMPLE).output
    eventually(lambda: "enforced" not in run(client, "plan", file).output)


def test_wrong_credentials_end_with_2_and_are_not_shown(client: list[str], file: Path) -> None:
    file.write_text("quotas: []")
    config = Path(client[-1])
    wrong = file.with_name("wrong.properties")
    wrong.write_text(config.read_text().replace("s3cret", "wr0ng"))
    result = run([*client[:-1], str(wrong)], "drift", file)
    told = "doesn't answer: the broker refuses the user, the password or the mechanism"
    assert (result.exit_code, told in result.output) == (2, True)
    assert "wr0ng" not in result.output


def test_names_and_rates_of_every_kind_are_read_back(client: list[str], file: Path) -> None:
    names = ("<default>", "%", '"', "ä ö", "a,b=c/d\\", "\x00", "..")
    quotas = {Entity(name): {"producer_byte_rate": 1.0} for name in names}
    quotas |= {
        Entity("<default>", CLIENT_DEFAULT): {"request_percentage": 1 / 3},
        Entity(ip="::1"): {"connection_creation_rate": 1.0},
    }
    quotas |= {Entity(name, in_cluster=True): {"produce": 1 / 3, "fetch": math.inf} for name in names}
    assert applied(client, file, in_yaml(quotas)).exit_code == 0
    assert run(client, "drift", file).output == "\nNo drift.\n"
    exported = file.with_name("exported.yaml")
    assert run(client, "export", "-o", exported).exit_code == 0
    assert read_declared([exported]).quotas == quotas


MANY: Final = 100_000


# This test is the last, because it leaves many records in the topic until Kafka compacts it.
@pytest.mark.long
def test_100_000_entities_are_applied_followed_and_removed(node: KafkaNode, client: list[str], file: Path) -> None:
    quotas = {Entity(f"user-{n:06}", in_cluster=True): {"produce": 1e6 + n} for n in range(MANY)}
    quotas[Entity(None, "many", in_cluster=True)] = {"produce": 5e6}
    file.write_text(in_yaml(quotas))
    planned = run(client, "plan", file)
    assert f"Plan: {MANY + 1} to add, 0 to change, 0 to remove." in planned.output
    assert run(client, "apply", "--yes", file).exit_code == 0
    eventually(lambda: gauge(node, "ClusterQuotas", "Entities") == MANY + 1)
    introduce_clients(node, ["many"])
    eventually(lambda: limit_of(node, ANYONE, "many") == 5e6)
    assert run(client, "drift", file).exit_code == 0
    exported = file.with_name("exported.yaml")
    assert run(client, "export", "-o", exported).exit_code == 0
    assert exported.read_text() == file.read_text()
    assert applied(client, file, "cluster-quotas: []", "--prune").exit_code == 0
    eventually(lambda: gauge(node, "ClusterQuotas", "Entities") == 0)
