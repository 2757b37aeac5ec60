"""Tests the commands on quotas of a running cluster: what they read and change, how they connect, and usage's bill."""

import math
import socket
import ssl
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace as Answer
from typing import Any, Final
from unittest.mock import Mock

import pytest
from kafka.net.manager import KafkaConnectionManager

from quotahost.base.errors import Unusable
from quotahost.cli import asking
from quotahost.cli.console import csv_text
from quotahost.cli.lab import history
from quotahost.cli.quotas import cluster as module
from quotahost.cli.quotas import usage
from quotahost.cli.quotas.cluster import Cluster, cluster_at, not_enforced
from quotahost.cli.quotas.command import show_bill
from quotahost.cli.quotas.plan import BUDGETS, Entity, compare
from quotahost.cli.quotas.usage import label_of, last_month, parse_month
from quotahost.kafka.client import NoAnswer, who_answers
from quotahost.model import DEFAULT
from quotahost.model.budgets import Budget
from quotahost.records import budgets
from tests.fakes.tls import tls_server
from tests.unit.cli.commands import run, told

BUDGETS_ON: Final[dict[str, str | None]] = {"client.quota.callback.budgets": None}  # Kafka hides the value
LACKS: Final = "budgets of storage are not enforced; set "
NO_FENCE: Final = "authorizer.class.name=org.quotahost.QuotaFence"
SASL: Final = {"security.protocol": "SASL_SSL", "sasl.username": "ops", "sasl.password": "hush"}


def test_who_may_not_change_client_quotas_is_told_so_by_a_plan_as_by_apply() -> None:
    planned = compare({Entity("alice"): {"producer_byte_rate": 1e6}}, {}, prune=False)
    user = Answer(entity_type="user", entity_name="alice")
    of_4_3_1 = Answer(error_code=31, error_message="Cluster authorization failed.", entity=[user])
    connection = Answer(send=None, run=lambda *_: Answer(entries=[of_4_3_1]))
    for validate_only in (True, False):
        refused = Cluster(connection, {}, SASL, "quotas").change(planned, validate_only=validate_only)
        give = "kafka-acls.sh --add --allow-principal User:ops --operation AlterConfigs --cluster (docs/security.md)"
        assert refused == {Entity("alice"): f"User:ops may not AlterConfigs cluster; {give}"}


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({}, [f"{LACKS}client.quota.callback.budgets=on and {NO_FENCE}"]),
        (BUDGETS_ON, [LACKS + NO_FENCE]),
        (BUDGETS_ON | {"authorizer.class.name": "org.quotahost.MonitoredQuotaFence"}, []),
        # A broker that may not be asked isn't said to enforce nothing.
        (NoAnswer("Local: Timed out"), ["can't check whether it enforces these quotas: Local: Timed out"]),
    ],
)
def test_a_broker_that_lacks_what_budgets_need_is_named(properties: Any, told: list[str]) -> None:
    broker: Any = Answer(properties=Mock(side_effect=[properties]))
    assert list(not_enforced(broker, [BUDGETS], "mine")) == told


@pytest.mark.parametrize(("topic", "count"), [("__quotahost_quotas", 1), ("other-quotas", 0)])
def test_a_broker_with_a_prefix_of_topics_may_read_another_topic_than_the_default(topic: str, count: int) -> None:
    fence = {"authorizer.class.name": "org.quotahost.QuotaFence", "client.quota.callback.topics.prefix": None}
    broker: Any = Answer(properties=lambda: BUDGETS_ON | fence)
    told = f"topics.prefix is set, so it may read another topic than {topic}; give its topic by --quotas-topic"
    assert list(not_enforced(broker, [BUDGETS], topic)) == [told] * count


def test_why_nobody_answers_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WAIT_MS", 500)
    told = "doesn't answer: the host name can't be resolved; check the address"
    with pytest.raises(Unusable, match=told), cluster_at("no.such.host.invalid:9092", None, "quotas"):
        pass


def heard_by(broker: int) -> Any:
    """A librdkafka client that gets its answers from this broker; -1 stands for a load balancer."""
    brokers = {each.id: each for each in (Answer(id=1, host="b", port=91), Answer(id=2, host="::1", port=92))}
    return Answer(list_topics=lambda timeout: Answer(orig_broker_id=broker, brokers=brokers))


@pytest.mark.parametrize(("broker", "told"), [(1, (1, "b:91")), (2, (2, "[::1]:92")), (-1, None)])
def test_a_broker_that_answers_is_asked_since_others_may_hang(broker: int, told: object) -> None:
    assert who_answers(heard_by(broker), 1) == told


@pytest.mark.parametrize("text", ["", "hush"])
def test_kafka_pythons_failure_leaks_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    """librdkafka has had an answer; then nobody listens at the address, or kafka-python refuses an option."""
    asked: list[Any] = []
    monkeypatch.setattr(module, "_WAIT_MS", 500)
    monkeypatch.setattr(module, "connect", lambda config, _: asked.append(config["bootstrap.servers"]) or heard_by(-1))
    if text:
        monkeypatch.setattr(KafkaConnectionManager, "bootstrap", lambda *_: float(text))
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=127.0.0.1:2\nsasl.password=hush")
    before = set(threading.enumerate())
    told = "^127.0.0.1:1 doesn't answer: .*; check the address"
    with pytest.raises(Unusable, match=told) as raised, cluster_at("127.0.0.1:1", file, "q"):
        pass
    assert "hush" not in str(raised.value)
    assert asked == ["127.0.0.1:1"], "the command's address wins over the file's"
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("command", ["drift FILE --bootstrap b", "export --bootstrap b", "usage FILE --history h"])
def test_without_its_libraries_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setattr(asking, "find_spec", lambda name: None if name in ("kafka", "yaml") else object())
    done = run("quotas", *command.split())
    # The exit code is not 1, by which drift says that something differs.
    told = "quotahost quotas needs kafka and yaml: pip install 'quotahost[quotas]'\n"
    assert (done.exit_code, done.stderr) == (2, told)


def test_a_file_that_is_not_there_is_named_before_a_broker_is_asked() -> None:
    command = ("quotas", "import-properties", "/nope/server.properties", "--bootstrap", "127.0.0.1:1")
    told(2, ["/nope/server.properties can't be read: No such file"], *command)


OLD: Final = budgets.key_of("old"), budgets.encode(Budget("old", ("old",), 1, False))


class Topic:
    """The topic of a cluster that has the budget ``old``."""

    name = "quotas"

    def __init__(self) -> None:
        self.written: list[tuple[bytes, bool]] = []

    def read(self) -> list[tuple[bytes, bytes]]:
        return [OLD]

    def write(self, records: Mapping[bytes, bytes | None]) -> dict[bytes, str]:
        self.written += [(key, value is None) for key, value in records.items()]
        return {}


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    """The topic of the cluster to which the commands connect; Kafka accepts all changes."""
    made = Topic()
    monkeypatch.setattr(module, "CompactedTopic", lambda *_: made)
    monkeypatch.setattr(Cluster, "_alter", lambda *_: {})
    monkeypatch.setattr(Cluster, "_lacking", lambda _: "")
    monkeypatch.setattr(module, "cluster_at", lambda *_: nullcontext(Cluster(None, {}, {}, "quotas")))
    return made


@pytest.mark.parametrize(("end", "code"), [(KeyboardInterrupt(), 130), (Unusable("the cluster doesn't answer"), 2)])
def test_who_interrupts_an_apply_is_told_that_some_of_it_may_be_applied(
    topic: Topic, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, end: BaseException, code: int
) -> None:
    monkeypatch.setattr(topic, "write", Mock(side_effect=end))
    (tmp_path / "quotas.yaml").write_text("cluster-quotas: [{user: alice, produce: 5}]")
    done = run("quotas", "apply", "--yes", "--bootstrap", "b", tmp_path / "quotas.yaml")
    assert (done.exit_code, "Not finished: some changes may be applied" in done.stderr) == (code, True)


def test_brokers_that_hang_are_waited_for_together(topic: Topic) -> None:
    together = threading.Barrier(3)

    def properties() -> dict[str, str | None]:
        together.wait(10)
        return {}

    brokers: Any = dict.fromkeys((3, 1, 2), Answer(properties=properties))
    declared: Any = Answer(sections={BUDGETS}, quotas={}, prune=False)
    cluster = Cluster(None, brokers, {}, "quotas")
    cluster.compare(declared, prune=False)
    assert [words.partition(":")[0] for words in cluster.warnings] == ["broker 1", "broker 2", "broker 3"]


@pytest.mark.parametrize("prune", [True, False])
def test_no_more_is_added_than_brokers_keep_and_what_is_removed_makes_room(
    topic: Topic, monkeypatch: pytest.MonkeyPatch, prune: bool
) -> None:
    monkeypatch.setattr(budgets.LatestBudgets, "most", 1)
    cluster = Cluster(None, {}, {}, "quotas")
    declared = {Entity(budget="new"): {"topics": "new", "bytes": 1, "of": "leaders"}}
    plan = compare(declared, cluster.recorded(), prune=prune)
    for validate_only in (False, True):
        assert bool(cluster.change(plan, validate_only=validate_only)) is not prune
    assert topic.written == ([(budgets.key_of("old"), True), (budgets.key_of("new"), False)] if prune else [])


def test_a_certificate_and_a_key_may_stand_in_the_clients_file(tmp_path: Path) -> None:
    server, file, key = tls_server(tmp_path)
    certificate = file.read_text()
    config = {"ssl.ca.pem": certificate, "ssl.certificate.pem": certificate, "ssl.key.pem": key.read_text()}
    server.load_verify_locations(file)
    server.verify_mode = ssl.CERT_REQUIRED
    ours, theirs = socket.socketpair()
    with ThreadPoolExecutor(1) as pool:
        accepted = pool.submit(server.wrap_socket, theirs, server_side=True)
        with module._context(config).wrap_socket(ours, server_hostname="localhost"), accepted.result() as end:
            assert end.getpeercert(True) == ssl.PEM_cert_to_DER_cert(certificate)


# ---- usage ----

LABELS = {
    Entity("alice", "bulk"): "bulk",
    Entity("alice"): "alice",
    Entity("alice", in_cluster=True): "alice in the cluster",
    Entity(None, "legacy"): "legacy",
    Entity(DEFAULT, in_cluster=True): "others",
}


@pytest.mark.parametrize(
    ("user", "client", "label"),
    [
        ("alice", "bulk", "bulk"), ("alice", "app", "alice in the cluster"),
        ("alice", "legacy", "alice in the cluster"), ("bob", "legacy", "legacy"), ("bob", "app", "others"),
        ("", "", "others"),
    ],
)  # fmt: skip
def test_the_most_specific_entity_with_a_label_counts(user: str, client: str, label: str) -> None:
    assert label_of(LABELS, user, client) == label
    assert label_of({Entity("nobody"): "n"}, user, client) == ""


def test_a_month_ends_where_the_next_begins() -> None:
    assert parse_month("2026-12") == (datetime(2026, 12, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))
    assert last_month(datetime(2026, 3, 31, tzinfo=UTC)) == "2026-02"
    for text in ("2026-13", "9999-12", "2026", "2026-11-01", ""):
        with pytest.raises(ValueError, match="is not a month"):
            parse_month(text)


def test_a_record_with_more_bytes_than_there_are_ends_no_bill(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file, out = tmp_path / "quotas.yaml", tmp_path / "bill.csv"
    file.write_text("quotas: []")
    made = usage.Bill(*parse_month("2026-11"))
    made.sums["c", "team"].written = math.inf  # the sum of two records of 1e308 bytes
    monkeypatch.setattr(history, "started", lambda *_: nullcontext())
    monkeypatch.setattr(usage, "bill", lambda *_: made)
    monkeypatch.chdir(tmp_path)
    done = run("quotas", "usage", file, "--history", "h", "--csv", out)
    nowhere = run("quotas", "usage", file, "--history", "h", "--csv", "none/bill.csv")  # short: a box wraps lines
    assert (nowhere.exit_code, "in a folder" in nowhere.output) == (2, True), "the error comes before Spark starts"
    assert (done.exit_code, out.read_text().splitlines()[1]) == (0, '"c","team","2026-11",0,720,inf,0,0,0,0')


@pytest.mark.parametrize(("month", "says"), [("2025-11", 0), ("9998-11", 1)])
def test_a_bill_is_incomplete_until_the_last_minutes_are_written(
    month: str, says: int, capsys: pytest.CaptureFixture[str]
) -> None:
    made = usage.Bill(*parse_month(month))
    made.sums["c", "team"].read = 1.0
    show_bill(made)
    assert capsys.readouterr().out.count("last minutes are in the history from 9998-12-01 00:15 on") == says


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "＝", " =", "\t=", "\r="])  # noqa: RUF001
def test_in_csv_no_text_is_a_formula_numbers_stay_and_each_row_is_a_line(sign: str) -> None:
    head, line, rest = csv_text(["a"], [[f'{sign}1+1;"x"']]).split("\n")
    assert (head, rest) == ('"a"', "")
    assert not line.strip('"').lstrip().startswith(("=", "+", "-", "@", "＝"))  # noqa: RUF001
    assert csv_text(["a", "b"], [["x\ny\x1b", 7]]) == '"a","b"\n"x\\ny\\x1b",7\n'
