"""Tests files of declared quotas: what they mean, the error of every mistake, and plans."""

import math
import re
from pathlib import Path

import pytest

from quotahost.base.errors import QuotahostError, Unusable
from quotahost.cli.quotas.files import Declared, in_yaml, read_declared, read_properties
from quotahost.cli.quotas.plan import Entity, compare
from quotahost.model import DEFAULT


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "quotas.yaml"


def read(file: Path, text: str) -> Declared:
    file.write_text(text, encoding="utf-8")
    return read_declared([file])


def problem(file: Path, text: str) -> str:
    with pytest.raises(Unusable) as raised:
        read(file, text)
    assert raised.value.exit_code == 2
    return str(raised.value).replace(str(file), "FILE")


def test_every_level_of_quotas_and_budgets_can_be_declared_and_are_written_again(file: Path) -> None:
    declared = read(
        file,
        """
        quotas:
          - {user: alice, client-id: app, producer_byte_rate: 10M}
          - {user: alice, client-id: <default>, consumer_byte_rate: 1Ki}
          - {user: alice, request_percentage: 12.5%, label: "team a"}
          - {user: <default>, client-id: <default>, controller_mutation_rate: 0.5}
          - {client-id: <default>, producer_byte_rate: 1K}
          - {ip: 10.0.0.7, connection_creation_rate: 5}
          - {ip: <default>, connection_creation_rate: 100}
          - {user: {name: <default>}, producer_byte_rate: 1}
          - {user: bob}
        cluster-quotas:
          - {user: <default>, produce: 3M, label: "007"}
          - {user: alice, client-id: app, produce: unlimited, fetch: 1M}
          - {user: alice, client-id: '', produce: 6M}
        budgets:
          - {topics: [orders.*], bytes: 500G, label: team-b}
          - {name: team, topics: [b, a.*], bytes: 2T, of: replicas}
        """,
    )
    assert declared.quotas == {
        Entity("alice", "app"): {"producer_byte_rate": 10e6},
        Entity("alice", DEFAULT): {"consumer_byte_rate": 1024},
        Entity("alice"): {"request_percentage": 12.5},
        Entity(DEFAULT, DEFAULT): {"controller_mutation_rate": 0.5},
        Entity(None, DEFAULT): {"producer_byte_rate": 1e3},
        Entity(ip="10.0.0.7"): {"connection_creation_rate": 5},
        Entity(ip=DEFAULT): {"connection_creation_rate": 100},
        Entity("<default>"): {"producer_byte_rate": 1},
        Entity("bob"): {},
        Entity(DEFAULT, in_cluster=True): {"produce": 3e6},
        Entity("alice", "app", in_cluster=True): {"produce": math.inf, "fetch": 1e6},
        Entity("alice", "", in_cluster=True): {"produce": 6e6},
        Entity(budget="orders.*"): {"topics": "orders.*", "bytes": 500 * 10**9, "of": "leaders"},
        Entity(budget="team"): {"topics": "a.*, b", "bytes": 2 * 10**12, "of": "replicas"},
    }
    labelled = Entity("alice"), Entity(DEFAULT, in_cluster=True), Entity(budget="orders.*")
    assert declared.labels == dict(zip(labelled, ("team a", "007", "team-b"), strict=True))
    assert declared.sections == {"quotas", "cluster-quotas", "budgets"}
    assert not declared.prune
    assert read(file, "prune: true\n---\nquotas: []").prune, "prune in one document applies to all"
    assert read(file, in_yaml(declared.quotas)).quotas == declared.quotas


@pytest.mark.parametrize("name", ["007", "no", "1e3", "true", "2024-01-01", "null", "~", " a ", "0x1f"])
def test_a_name_is_never_taken_for_a_number_or_a_truth_value(file: Path, name: str) -> None:
    written = f'"{name}"' if name in ("null", "~", " a ") else name
    declared = read(file, f"quotas: [{{user: {written}, producer_byte_rate: 1}}]")
    assert list(declared.quotas) == [Entity(name)]


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])  # standard output is ASCII in some environments
def test_names_that_are_hard_to_write_command_no_terminal_and_are_read_as_they_are(file: Path, encoding: str) -> None:
    names = ["<default>", "007", "a/b:c,d\\", '"', "\n", "a\nb", "\x00", "\x85", "\ufeff", "- a", "#", "\ttab", "Zoë"]
    names += ["\x1b[2J", "\u202egpj.exe", "\u200b", "\U000e0001"]
    quotas = {Entity(name): {"producer_byte_rate": 1 / 3} for name in names}
    written = in_yaml(quotas)
    assert all(char.isprintable() or char == "\n" for char in written)
    file.write_text(written, encoding, "backslashreplace")
    assert read_declared([file]).quotas == quotas


KAFKA_USERS = """
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata: {name: tls-user, labels: {strimzi.io/cluster: c}}
spec:
  authentication: {type: tls}
  authorization: {type: simple, acls: []}
  quotas: {producerByteRate: 1048576, consumerByteRate: 2097152, requestPercentage: 55, controllerMutationRate: 10.5}
---
apiVersion: v1
kind: List
items:
  - kind: KafkaUser
    metadata: {name: scram-user}
    spec: {authentication: {type: scram-sha-512}, quotas: {requestPercentage: 55}}
  - kind: KafkaTopic
    metadata: {name: orders}
  - kind: KafkaUser
    metadata: {name: free}
"""
OF_A = "quotas:\n- user: a\n  "


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"{OF_A}producer_byterate: 1", "FILE:3: quotas[0].producer_byterate: is an unknown key; did you"),
        # Many operators write the other section's key here.
        (f"{OF_A}produce: 1", "is an unknown key; write one of label, user, client-id, ip, producer_byte_rate, "),
        (f"cluster-{OF_A}producer_byte_rate: 1", "key; write one of label, user, client-id, produce, fetch"),
        ("quotaz: []", "FILE:1: quotaz: is an unknown key; did you mean quotas?"),
        (f"{OF_A}producer_byte_rate: 10Q", "FILE:3: quotas[0].producer_byte_rate: 10Q has the unknown unit"),
        (f"{OF_A}producer_byte_rate: unlimited", "unlimited can't be unlimited in Kafka; leave the key"),
        (f"{OF_A}producer_byte_rate:", "FILE:3: quotas[0].producer_byte_rate: (nothing) is not a number"),
        (f"{OF_A}user: b", "FILE:3: user is there twice; remove one of the two"),
        (f"{OF_A[:-2]}- user: a", "FILE:3: quotas[1]: user a is declared in FILE:2: quotas[0], too; keep one"),
        ("quotas:\n- ip: ::1\n  user: a\n  connection_creation_rate: 3", "FILE:2: quotas[0]: has an ip beside a user"),
        ("quotas:\n- producer_byte_rate: 3", "FILE:2: quotas[0]: names no client; write user, client-id, both, or ip"),
        ("quotas:\n- user: ''", "FILE:2: quotas[0].user: '' is not a name; write one, or <default>"),
        ("quotas:\n- user:", "FILE:2: quotas[0].user: (nothing) is not a name"),
        ("quotas: 5", "FILE:1: quotas: 5 is not a list; write [A, B], or each entry after a dash; [] is none"),
        # All entries of the section are commented out, for example beside prune: true.
        ("cluster-quotas:\nbudgets: []", "FILE:1: cluster-quotas: (nothing) is not a list; write [A, B], or each"),
        ("quotas: [a]", "FILE:1: quotas[0]: a is not a mapping; write NAME: VALUE"),
        *((f"quotas: [{{user: a, label: {label}}}]", "is not a label") for label in ("", "' '", "[a]", "x" * 201)),
        ("quotas: [{ip: 10.0.0.7, label: a}]", "leave the label out"),
        ("prune: perhaps", "FILE:1: prune: perhaps is neither true nor false; write one of them"),
        ("cluster-quotas:\n- client-id: <default>\n  produce: 3", "FILE:2: cluster-quotas[0]: uses a default that"),
        ("- user: a", "FILE:1: isn't a mapping; write prune, quotas, cluster-quotas, budgets, or a KafkaUser"),
        ("quotas: [", "FILE is not YAML: while parsing a flow node"),
        ("quotas:\n- user: *a", "FILE:2: quotas[0].user: has an alias or anchor"),
        ("&a quotas: []", "FILE:1: has a key that is not a text"),
        ("quotas: " + 990 * "[", "FILE is not YAML: maximum recursion depth"),
        ("cluster-quotas:\n- client-id: ''\n  produce: 3", "FILE:2: cluster-quotas[0]: names no client"),
        *((f"budgets:\n- {entry}", words) for entry, words in (
            ("{topics: [a, b], bytes: 1G}", "has several topics but no name"),
            ("{topics: ['a*b'], bytes: 1G}", "names no topics"),
            ("{topics: [a], bytes: }", "budgets[0].bytes: (nothing) is not a number"),
            ("{topics: [a], bytes: none}", "budgets[0].bytes: none is not a number; write a plain number, or"),
            ("{topics: [a]}", "FILE:2: budgets[0].bytes: is missing; write it"),
            ("{topics: [], bytes: 1G}", "budgets[0].topics: is empty; write an entry, or leave the key out"),
            ("{name: 'a b', topics: [a], bytes: 1G}", "needs a name of 1 to 64 letters"),
            ("{topics: [a], bytes: 1G, of: both}", "budgets[0].of: both is wrong; write 'leaders' or 'replicas'"),
            ("{bytes: 1G}", "FILE:2: budgets[0]: names no topics; write topics: [orders.*], or a label of topic-"),
            ("{label: team, bytes: 1G}", "FILE:2: budgets[0].label: team has no topics; write topics here, or"))),
        ("budgets: [{label: team a, bytes: 1G}]\ntopic-labels: {team a: [a]}", "needs a name of 1 to 64 letters"),
        ("topic-labels:\n  a: [orders*eu]", "FILE:2: topic-labels.a[0]: orders*eu names no topics; write the name"),
        ("topic-labels:\n  ' ': [orders]", "FILE:2: topic-labels.' ': ' ' is not a label; write a text of 1 to 200"),
        ("topic-labels: [orders]", "FILE:1: topic-labels: is not a mapping; write NAME: VALUE"),
        ('quotas: [{"a\\nFORGED": 1}]', r"FILE:1: quotas[0].'a\nFORGED': is an unknown key"),
        ('{"a\\nFORGED": 1, "a\\nFORGED": 1}', r"FILE:1: 'a\nFORGED' is there twice"),
        (KAFKA_USERS.replace("{requestPercentage: 55}", "{requestPercent: 55}"),
         "FILE:15: items[0].spec.quotas.requestPercent: is an unknown key; did you mean requestPercentage?"),
        ("a0: &a0 [x, x, x]\na1: &a1 [*a0, *a0, *a0]", "FILE:1: a0: has an alias or anchor (* or &); write out what"),
    ],
)  # fmt: skip
@pytest.mark.proves("faults.yaml-bomb")
def test_a_mistake_is_told_with_place_value_and_remedy(file: Path, text: str, told: str) -> None:
    assert told in problem(file, text)


def test_all_mistakes_of_all_files_are_told_at_once(file: Path) -> None:
    with pytest.raises(Unusable, match="can't be read: No such file"):
        read_declared([file])
    assert len(problem(file, "quotas:\n- user: ''\n- user: a\n  x: 1\n---\nprun: true\n").splitlines()) == 3
    for name in ("a", "b"):
        file.with_name(name).write_text("quotas: [{user: alice, producer_byte_rate: 1}]")
    with pytest.raises(Unusable, match=r"b:1: quotas\[0\]: user alice is declared in .*a:1"):
        read_declared([file.with_name("a"), file.with_name("b")])


def test_strimzis_users_are_read(file: Path) -> None:
    declared = read(file, KAFKA_USERS)
    assert declared.sections == {"quotas"}, "only the quotas of KafkaUsers are managed"
    assert declared.quotas == {
        Entity("CN=tls-user"): {
            "producer_byte_rate": 1048576, "consumer_byte_rate": 2097152, "request_percentage": 55,
            "controller_mutation_rate": 10.5,
        },
        Entity("scram-user"): {"request_percentage": 55},
        Entity("free"): {},
    }  # fmt: skip
    assert declared.left_out == ["KafkaTopic"]


OF_SHARES = "client.quota.callback.plugin.cluster-quota"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a=b", "has no quotas of client.quota.callback.plugin.cluster-quota.*"),
        (f"{OF_SHARES}.produce.clients=alice:3M", "USER/CLIENT-ID:RATE"),
        (f"{OF_SHARES}.produce.default=10X", f"{OF_SHARES}.produce.default=10X has the unknown unit 'X'"),
        (f"{OF_SHARES}.request.users=a:1", "is not a property that quotahost had"),
        (f"config.providers=file\n{OF_SHARES}.fetch.default=${{file:/f:k}}",
         f"{OF_SHARES}.fetch.default has a value that only the broker's config provider knows; replace"),
    ],
)  # fmt: skip
def test_wrong_properties_of_earlier_versions_are_told(file: Path, text: str, told: str) -> None:
    file.write_text(text)
    with pytest.raises(QuotahostError, match=re.escape(told)):
        read_properties(file)


OF_ALICE = {"producer_byte_rate": 1e6, "request_percentage": 50.0}
PRESENT = {Entity("alice"): OF_ALICE, Entity("bob"): {"producer_byte_rate": 2e6}}


def test_all_that_an_entity_is_declared_with_is_wanted_and_not_only_what_differs() -> None:
    more = {Entity("alice"): OF_ALICE | {"consumer_byte_rate": 2e6}}
    assert compare(more, PRESENT, prune=False).wanted == more
    assert compare({Entity("alice"): OF_ALICE}, PRESENT, prune=True).wanted == {Entity("bob"): {}}


def test_a_budget_may_be_for_the_topics_of_a_label_that_any_file_gives(tmp_path: Path) -> None:
    files = {
        "budgets.yaml": """
            budgets:
              - {label: team-a, bytes: 500G}
              - {label: team-a, name: all-of-a, bytes: 2T, of: replicas}
              - {label: team-a, topics: [logs], bytes: 1G}
            """,
        "orders.yaml": "topic-labels: {team-a: [orders.*, audit], team-b: [logs]}",
        "audit.yaml": "topic-labels: {team-a: [audit, audit.*]}",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    declared = read_declared(tmp_path / name for name in files)
    topics = {entity.budget: quotas["topics"] for entity, quotas in declared.quotas.items()}
    assert topics == {"team-a": "audit, audit.*, orders.*", "all-of-a": "audit, audit.*, orders.*", "logs": "logs"}
    assert set(declared.labels.values()) == {"team-a"}
    assert declared.sections == {"budgets"}
    assert read(tmp_path / "written.yaml", in_yaml(declared.quotas)).quotas == declared.quotas
