"""``quotahost quotas`` against a real broker: what is declared is what Kafka and quotahost have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from quotahost.declared import entities
from quotahost.declared.document import read_declared
from quotahost.declared.entities import Entity
from quotahost.declared.target import Target, target
from quotahost.declared.written import in_yaml
from typer.testing import CliRunner, Result

from harness.clients.load import QUICK_QUOTAS
from harness.clients.many_clients import introduce_clients
from harness.kafka.admin import DEFAULT, alter_broker_config, describe_quotas, set_quota
from harness.kafka.node import KafkaNode
from harness.plugin import PREFIX, ROOT
from harness.system.waiting import eventually
from quotahost.cli.main import app
from tests.broker.support.node import ANYONE, callback_node, limit_of
from tests.unit.declared.entities import QUOTAS

pytestmark = pytest.mark.broker

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
    """How to connect as root: the options of each command, with a file of Kafka's Java client."""
    config = node.client_config("root")
    file = tmp_path_factory.mktemp("client") / "client.properties"
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="root" password="s3cret";'
    file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={jaas}\n")
    return ["--bootstrap", config["bootstrap.servers"], "--client-config", str(file)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "quotas.yaml"


def run(client: list[str], *arguments: object) -> Result:
    return CliRunner().invoke(app, ["quotas", *map(str, arguments), *client])


def applied(client: list[str], file: Path, text: str, *options: str) -> Result:
    file.write_text(text, encoding="utf-8")
    return run(client, "apply", "--yes", file, *options)


@pytest.fixture(autouse=True)
def _empty(client: list[str], tmp_path: Path) -> Iterator[None]:
    yield
    assert applied(client, tmp_path / "nothing.yaml", NOTHING).exit_code == 0


def test_the_example_is_applied_as_it_stands_and_the_second_time_changes_nothing(
    node: KafkaNode, client: list[str], file: Path
) -> None:
    planned = run(client, "plan", EXAMPLE)
    assert (planned.exit_code, describe_quotas(node)) == (0, [])
    assert "Plan: 15 to add, 0 to change, 0 to remove." in planned.output
    assert "20,000,000 bytes/s (20M)" in planned.output
    assert run(client, "drift", EXAMPLE).exit_code == 1
    first = run(client, "apply", "--yes", EXAMPLE)
    assert (first.exit_code, "Applied 15 of 15 changes." in first.output) == (0, True)
    found = {tuple(sorted(entity.items())): rates for entity, rates in describe_quotas(node)}
    assert found[("user", "billing"),] == {"producer_byte_rate": 20e6, "consumer_byte_rate": 40e6}
    assert found[("client-id", DEFAULT), ("user", "billing")] == {"producer_byte_rate": 10e6}
    assert found[("ip", DEFAULT),] == {"connection_creation_rate": 100}
    assert len(found) == 7
    second = run(client, "apply", EXAMPLE)  # it doesn't ask, as there is nothing to do
    assert (second.exit_code, "Nothing to do" in second.output) == (0, True)
    drift = run(client, "drift", EXAMPLE)
    assert (drift.exit_code, drift.output) == (0, "\nNo drift.\n")
    assert run(client, "export", "-o", file).exit_code == 0
    assert read_declared([file]).quotas == read_declared([EXAMPLE]).quotas


def test_what_is_applied_is_enforced(node: KafkaNode, client: list[str], file: Path) -> None:
    text = "quotas: [{client-id: as-code, producer_byte_rate: 2M}]\ncluster-quotas: [{client-id: all, produce: 3M}]"
    assert applied(client, file, text).exit_code == 0
    introduce_clients(node, ["as-code", "all"])
    eventually(lambda: limit_of(node, ANYONE, "as-code") == 2e6 and limit_of(node, ANYONE, "all") == 3e6, 60)


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


def test_nothing_is_changed_without_a_yes(node: KafkaNode, client: list[str], file: Path) -> None:
    file.write_text("quotas: [{user: alice, producer_byte_rate: 1M}]")
    refused = CliRunner().invoke(app, ["quotas", "apply", str(file), *client], input="n\n")
    assert (refused.exit_code, describe_quotas(node)) == (1, [])


def test_what_kafka_refuses_is_named_and_the_rest_is_done(node: KafkaNode, client: list[str], file: Path) -> None:
    entries = "{ip: no.such.host.invalid, connection_creation_rate: 3}, {user: alice, producer_byte_rate: 1M}"
    file.write_text(f"quotas: [{entries}]")
    planned = run(client, "plan", file)
    assert "failed ip no.such.host.invalid: no.such.host.invalid is not a valid IP" in planned.output
    result = run(client, "apply", "--yes", file)
    assert (result.exit_code, "Applied 1 of 2 changes. Not applied:" in result.output) == (1, True)
    assert "failed ip no.such.host.invalid: " in result.output
    assert describe_quotas(node) == [({"user": "alice"}, {"producer_byte_rate": 1e6})]


def test_it_says_where_the_brokers_suppliers_enforce_other_quotas(
    node: KafkaNode, client: list[str], file: Path
) -> None:
    file.write_text("quotas: [{user: alice, producer_byte_rate: 1M}]")
    assert "enforced" not in run(client, "plan", file).output
    alter_broker_config(node, {PREFIX + "supplier": "static"})
    try:

        def told() -> bool:
            return (
                "broker 1: Kafka's client quotas are not enforced; add client-quotas to"
                in run(client, "plan", file).output
            )

        eventually(told, 60)
        needs = run(client, "plan", EXAMPLE)
        assert (
            needs.exit_code,
            "doesn't tell cluster-wide quotas; set client.quota.callback.supplier" in needs.output,
        ) == (2, True)
    finally:
        alter_broker_config(node, {PREFIX + "supplier": None})
    eventually(lambda: "enforced" not in run(client, "plan", file).output, 60)


def test_wrong_credentials_end_with_2_and_are_not_shown(client: list[str], file: Path) -> None:
    file.write_text("quotas: []")
    config = Path(client[-1])
    wrong = file.with_name("wrong.properties")
    wrong.write_text(config.read_text().replace("s3cret", "wr0ng"))
    result = run([*client[:-1], str(wrong)], "drift", file)
    assert (result.exit_code, "doesn't answer with these credentials" in result.output) == (2, True)
    assert "wr0ng" not in result.output


@pytest.fixture(scope="module")
def cluster(node: KafkaNode) -> Iterator[Target]:
    with target(node.bootstrap, {}) as cluster:
        yield cluster


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(
    {Entity(name): {"producer_byte_rate": 1.0} for name in ("<default>", "%", '"', "ä ö", "a,b=c/d\\", "\x00", "..")}
)
@example(
    {
        Entity("<default>", entities.DEFAULT): {"request_percentage": 1 / 3},
        Entity(ip="::1"): {"connection_creation_rate": 1.0},
    }
)
@given(QUOTAS)
def test_what_is_declared_is_read_back(cluster: Target, tmp_path: Path, quotas: dict[Entity, dict[str, float]]) -> None:
    file = tmp_path / "quotas.yaml"
    file.write_text(in_yaml(quotas) + ("" if "cluster-quotas:" in in_yaml(quotas) else "cluster-quotas: []\n"))
    declared = read_declared([file])
    changes = cluster.compare(declared, prune=True).changes
    assert cluster.apply(changes) == []
    assert cluster.wait_until_made(changes, []) == ()
    assert cluster.present() == declared.quotas == quotas
    assert cluster.compare(declared, prune=True).changes == ()
