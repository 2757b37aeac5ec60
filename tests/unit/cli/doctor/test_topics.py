"""Tests findings on the rights to quotahost's topics, by properties and a cluster; tests/broker asks real brokers."""

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from harness.system.proxy import swallowing
from quotahost.base.errors import QuotahostError
from quotahost.cli.console import Finding, Level
from quotahost.cli.doctor import doctor
from quotahost.cli.doctor import topics as cluster_check
from quotahost.cli.doctor.topics import check_cluster, check_rights, needed
from quotahost.cli.property_files import in_librdkafkas_names
from quotahost.kafka import client
from quotahost.kafka import rights as kafka_rights
from quotahost.kafka.client import NoAnswer, connect
from quotahost.kafka.rights import Rights, Shape
from quotahost.records.topics import LOOKS, REFUSED, SHARES, SNAPSHOTS, TOPICS, USAGE, WATCH, AclRole, Topic
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from tests.fakes.plugin_context import settings
from tests.unit.cli.commands import properties_file, told

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
FENCE = "authorizer.class.name=org.quotahost.QuotaFence"
OPEN = "allow.everyone.if.no.acl.found"
OPEN_TO_ALL = (f"authorizer.class.name={STANDARD}", f"{OPEN}=true")
UNSET = "authorizer.class.name is not set: everybody who can connect may write to "
UNLESS = f"{OPEN} is true: where no ACL is set, everybody may write to"
SNAPSHOTS_READ, WATCHED = ".factor.source=snapshots", ".tasks=publish-usage"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], []),
        ([".factor.source=local"], []),
        ([SNAPSHOTS_READ, ".tasks=", FENCE], []),
        ([SNAPSHOTS_READ, ".tasks=", f"authorizer.class.name={STANDARD}", f"{OPEN}=false"], []),
        ([SNAPSHOTS_READ, "process.roles=controller"], []),
        ([SNAPSHOTS_READ, ".tasks="], [f"{UNSET}__quotahost_snapshots, and this broker decides by these"]),
        ([SNAPSHOTS_READ, ".tasks=", ".topics.prefix=my_"], ["may write to my_snapshots, and"]),
        ([SNAPSHOTS_READ, ".tasks=", ".budgets=on"], [f"{UNSET}__quotahost_snapshots, __quotahost_quotas, and this"]),
        ([SNAPSHOTS_READ, ".tasks=", *OPEN_TO_ALL], [f"{UNLESS} __quotahost_snapshots, and"]),
        ([".factor.source=cluster-volumes", ".tasks=", FENCE, ".fence.authorizer=none"],
         ["fence.authorizer is none: everybody"]),
        ([".supplier=cluster-quota", ".tasks=", FENCE, f"{OPEN}=TRUE"],
         [f"{UNLESS} __quotahost_usage, __quotahost_shares,"]),
        ([WATCHED], [f"{UNSET}__quotahost_watch,"]),
        ([WATCHED, ".topics.prefix=my_"], ["show the names and rates of all clients, and read them in my_looks"]),
    ],
)  # fmt: skip
def test_topics_open_to_all_are_weak(found: Callable[..., list[Finding]], lines: list[str], words: list[str]) -> None:
    findings = found(check_rights, *lines)
    assert [text in finding.text for text, finding in zip(words, findings, strict=True)] == [True] * len(words)
    assert all(finding.level is Level.WEAK and finding.remedy for finding in findings)


NONE = frozenset[str]()
NOBODY: Any = None  # the client, which these tests don't use
Cluster = Callable[..., list[tuple[Level, str]]]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A function that returns the findings on a cluster that gives these rights to some credentials."""

    def check(
        rights: Rights, role: AclRole | None = None, given: Settings | None = None, known: bool = True
    ) -> list[tuple[Level, str]]:
        monkeypatch.setattr(cluster_check, "ask", lambda *_: rights)
        config = {"security.protocol": "SASL_SSL", "sasl.username": "ann"} if known else {}
        return [(each.level, each.text) for each in check_cluster(NOBODY, "b:9092", config, given, role)]

    return check


def all_of(role: AclRole) -> dict[str, frozenset[str]]:
    return {topic.name: frozenset[str](topic.operations(role)) for topic in TOPICS}


def test_settings_say_what_the_plugins_need(cluster: Cluster) -> None:
    given = settings(tasks="publish-volumes", factor__source="snapshots", topics__prefix="my_")
    assert needed(given, AclRole.PLUGINS) == {"my_snapshots": {"Read", "Write"}}
    with_budgets = settings(tasks="publish-volumes", factor__source="snapshots", budgets="on")
    assert needed(with_budgets, AclRole.PLUGINS)["__quotahost_quotas"] == {"Read"}
    assert needed(settings(factor__source="local"), AclRole.PLUGINS) == {}
    rights = Rights(all_of(AclRole.PLUGINS), frozenset({"DescribeConfigs"}), {}, group=False)
    found = cluster(rights, AclRole.PLUGINS, settings(tasks="cordon", factor__source="snapshots"))
    assert [text.split(", which")[0] for level, text in found if level is Level.WRONG] == [
        "these credentials may not Describe groups quotahost-*",
        "these credentials may not AlterConfigs on the cluster for the task cordon",
    ]


@pytest.mark.parametrize(
    ("role", "own", "missing", "level", "words"),
    [
        pytest.param(AclRole.PLUGINS, {SNAPSHOTS.name: None, SHARES.name: None}, [SNAPSHOTS, SHARES], Level.WRONG,
                     "may not Create __quotahost_snapshots, which doesn't exist", id="the writer creates the topic"),
        pytest.param(AclRole.PIPELINE, {SNAPSHOTS.name: frozenset({"Read", "Write", "Alter"})}, [], Level.WEAK,
                     "may also Alter, Write __quotahost_snapshots", id="the pipeline has excess rights"),
        pytest.param(AclRole.PLUGINS, {LOOKS.name: all_of(AclRole.PLUGINS)[LOOKS.name] | {"Read"}}, [], Level.WEAK,
                     "may also Read __quotahost_looks: more than is needed by the brokers",
                     id="the plugins don't need to see all clients"),
    ],
)  # fmt: skip
def test_a_topic_that_is_missing_and_a_right_beyond_a_partys_needs_are_named(
    cluster: Cluster, role: AclRole, own: dict[str, frozenset[str] | None], missing: list[Topic], level: Level,
    words: str,
) -> None:  # fmt: skip
    given = {name: rights for name, rights in (all_of(role) | own).items() if rights is not None}
    found = cluster(Rights(given, NONE, {}, {each.name: False for each in missing}), role)
    (text,) = [text for of, text in found if of is level]
    assert (found[-1][0], words in text) == (level, True)


def test_rights_to_topics_that_do_not_exist_yet_are_not_taken_for_given(cluster: Cluster) -> None:
    """Kafka tells the rights to existing topics alone; the plugins may lack Read or Write of this one."""
    given = all_of(AclRole.PLUGINS)
    del given[SNAPSHOTS.name]
    found = cluster(Rights(given, NONE, {}, {SNAPSHOTS.name: True}), AclRole.PLUGINS)
    assert [text.startswith(SNAPSHOTS.name) for level, text in found if level is Level.NOTE] == [True]
    assert [SNAPSHOTS.name in text for level, text in found if level is Level.GOOD] == [False]


WATCHERS = [("ann", "Write", WATCH), ("bob", "Write", WATCH), ("brokers", "Create", WATCH)]
READER = [("ann", "Write", WATCH), ("ann", "Read", LOOKS), ("brokers", "Write", LOOKS)]


@pytest.mark.parametrize(
    ("acls", "level", "words"),
    [
        ([("quotahost", "Write", USAGE), ("mallory", "All", USAGE)], Level.WEAK,
         "User:mallory may All by the ACL for literal __quotahost_usage; User:quotahost may Write by the ACL for lit"),
        (WATCHERS, Level.GOOD, "ACLs let User:ann, User:bob write to __quotahost_watch, and watch"),
        *(([*WATCHERS, ("mallory", operation, WATCH)], Level.WEAK,
           f"rights to __quotahost_watch: User:mallory may {operation} by the ACL for literal __quotahost_watch")
          for operation in ("Delete", "AlterConfigs", "All")),
        # If no ACL names a writer, the brokers are super users.
        *(([*writers, ("mallory", "Delete", USAGE)], Level.WEAK,
           "rights to __quotahost_usage: User:mallory may Delete by")
          for writers in ([("brokers", "Write", USAGE)], [])),
        ([("*", "Describe", USAGE)], Level.WEAK, "User:* may Describe by the ACL for literal __quotahost_usage"),
        (READER, Level.GOOD, "ACLs let only User:brokers write to __quotahost_looks"),
        *(([*READER, ("mallory", operation, LOOKS)], Level.WEAK, f"User:mallory may {operation} by the ACL for literal "
           "__quotahost_looks") for operation in ("Read", "All")),
    ],
)  # fmt: skip
def test_who_may_change_or_read_more_than_others_by_acls_is_named(
    cluster: Cluster, acls: list[tuple[str, str, Topic]], level: Level, words: str
) -> None:
    given: dict[str, dict[str, dict[str, list[str]]]] = {}
    for who, right, topic in acls:
        given.setdefault(topic.name, {}).setdefault(f"User:{who}", {})[right] = [f"literal {topic.name}"]
    found = cluster(Rights({}, NONE, given))
    assert [of for of, text in found if words in text] == [level]
    assert level is not Level.GOOD or {of for of, _ in found[:-1]} == {Level.GOOD}


@pytest.mark.parametrize(("brokers", "told"), [(1, []), (3, [True])])
def test_one_brokers_disks_do_not_protect_a_cluster(cluster: Cluster, brokers: int, told: list[bool]) -> None:
    found = cluster(Rights({}, NONE, {}, brokers=brokers), None, settings(static__storage__hard__min_free_bytes="5G"))
    assert ["b:9092 has 3 brokers" in text for _, text in found if "not cluster-wide" in text] == told


RIGHT = {
    "cleanup.policy": "compact", "min.insync.replicas": "1", "max.message.bytes": "1048588",
    "message.timestamp.type": "LogAppendTime",
}  # fmt: skip


@pytest.mark.parametrize(
    ("topic", "replicas", "change", "level", "words"),
    [
        (SHARES, 3, {}, Level.GOOD, "are right: __quotahost_shares"),
        (SHARES, 3, {"cleanup.policy": "delete"}, Level.WRONG, "loses the records of silent brokers"),
        (REFUSED, 3, {"cleanup.policy": "delete"}, Level.GOOD, "are right"),  # dead letters
        (SHARES, 1, {"min.insync.replicas": "2"}, Level.WRONG, "nobody can write to it"),
        (SHARES, 2, {"min.insync.replicas": "2"}, Level.WEAK, "if one broker is down, nobody can write"),
        (SHARES, 3, {"max.message.bytes": "1000"}, Level.WEAK, "max.message.bytes=1000"),
        (SHARES, 3, {"message.timestamp.type": "CreateTime"}, Level.WEAK, "clocks of its writers"),
        (SHARES, 1, None, Level.NOTE, "configuration of __quotahost_shares is not checked"),
    ],
)
def test_how_a_topic_is_kept(
    cluster: Cluster, topic: Topic, replicas: int, change: dict[str, str] | None, level: Level, words: str
) -> None:
    shapes = {topic.name: Shape(replicas, None if change is None else RIGHT | change)}
    *_, (found, text) = cluster(Rights({topic.name: NONE}, NONE, {}, shapes=shapes))
    assert (found, words in text) == (level, True), text


def test_how_topics_are_kept_is_told_where_everybody_may_do_everything_too(cluster: Cluster) -> None:
    shapes = {SHARES.name: Shape(3, RIGHT | {"cleanup.policy": "delete"})}
    rights = Rights({SHARES.name: NONE}, frozenset({"Alter"}), None, shapes=shapes)
    assert [level for level, _ in cluster(rights, known=False)] == [Level.WEAK, Level.WRONG]


def test_credentials_that_are_not_understood_are_an_error_and_not_nobodys() -> None:
    for mechanism, jaas, needs in (
        ("PLAIN", 'o.PlainLoginModule required username="u";', "a user and a password"),
        ("SCRAM-SHA-512", "nonsense", "a user and a password"),
        ("GSSAPI", "o.Krb5LoginModule required useKeyTab=true;", "sasl.kerberos"),
        ("OAUTHBEARER", 'o.OAuthBearerLoginModule required clientId="c";', "sasl.oauthbearer.token.endpoint.url"),
    ):
        given = {"security.protocol": "sasl_ssl", "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
        with pytest.raises(NoAnswer, match=f"sasl.mechanism={mechanism} needs {needs}") as raised:
            connect(in_librdkafkas_names(given), 1)
        assert jaas not in str(raised.value)


def test_the_file_of_javas_client_is_read_as_well(tmp_path: Path) -> None:
    tls = {"security.protocol": "ssl"}
    ca = tmp_path / "ca.pem"
    pem = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(ca), "ssl.enabled.protocols": "TLSv1.3"}
    with pytest.raises(QuotahostError, match=f"ssl.truststore.location={ca} can't be read: No such file"):
        in_librdkafkas_names(tls | pem)
    ca.touch()
    assert in_librdkafkas_names(tls | pem) == tls | {"ssl.ca.location": str(ca)}
    texts = {"ssl.truststore.certificates": "CA", "ssl.keystore.certificate.chain": "CERT", "ssl.keystore.key": "KEY"}
    types = {"ssl.truststore.type": "PEM", "ssl.keystore.type": "PEM"}
    expected = {"ssl.ca.pem": "CA", "ssl.certificate.pem": "CERT", "ssl.key.pem": "KEY"}
    assert in_librdkafkas_names(tls | texts | types) == tls | expected
    remedy = "reads PEM files only. Convert a truststore by `keytool -list .*, a PKCS12 keystore by `openssl"
    with pytest.raises(QuotahostError, match=remedy):
        in_librdkafkas_names(tls | {"ssl.keystore.location": "/secret.jks"})


class Closing(BaseRequestHandler):
    """Closes a connection after the first bytes, as Kafka does for another security protocol."""

    def handle(self) -> None:
        self.request.recv(1000)


@pytest.fixture
def closing() -> Iterator[str]:
    with ThreadingTCPServer(("127.0.0.1", 0), Closing) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "the broker closes the connection: it requires another security.protocol"),
        ({"security.protocol": "SSL"}, "TLS fails: the broker's listener doesn't use TLS"),
        ({"no.such.option": "secret"}, "No such configuration property"),
    ],
)
def test_why_nobody_answers_is_said_in_words(closing: str, config: dict[str, str], words: str) -> None:
    with pytest.raises(NoAnswer, match=words) as raised:
        connect({"bootstrap.servers": closing, "socket.connection.setup.timeout.ms": 120_000} | config, 60, moment=1)
    assert "secret" not in str(raised.value)


@contextmanager
def hanging() -> Iterator[str]:
    """A server like a stopped process: the kernel accepts connections for it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("silence", [swallowing, hanging])
def test_silence_is_not_taken_for_a_listener_that_closes(silence: Callable[[], AbstractContextManager[str]]) -> None:
    with silence() as silent, pytest.raises(NoAnswer, match="no answer: the broker may hang, or the network"):
        connect({"bootstrap.servers": silent, "socket.connection.setup.timeout.ms": 1000}, 4, moment=0.5)


def test_a_listener_that_closes_late_is_no_network_that_swallows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy broker with SASL: the client is connected, so its second request may outlast the connection timeout."""
    now, outcomes = [0.0], iter((KafkaError._TIMED_OUT, KafkaError._TRANSPORT))

    def busy(options: dict[str, Any]) -> Any:
        def list_topics(topic: str | None, timeout: float) -> None:
            now[0] += min(timeout, 7.0)
            if (outcome := next(outcomes)) == KafkaError._TRANSPORT:
                options["error_cb"](KafkaError(KafkaError._ALL_BROKERS_DOWN))
            raise KafkaException(KafkaError(outcome))

        return SimpleNamespace(list_topics=list_topics, poll=lambda _: None)

    monkeypatch.setattr(client, "AdminClient", busy)
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with pytest.raises(NoAnswer, match="it requires another security"):
        client.connect({}, 10)


def test_whether_topics_may_be_created_is_not_told_while_no_controller_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers answer all other questions. If no group coordinator answers, the client doesn't lack the right."""
    cluster, topic = Future[Any](), Future[Any]()
    cluster.set_result(SimpleNamespace(authorized_operations=[], nodes=[1]))
    topic.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
    made: dict[str, Future[Any]] = {"t": Future()}
    admin: Any = SimpleNamespace(
        describe_cluster=lambda **_: cluster, describe_topics=lambda *_, **__: {"t": topic},
        create_topics=lambda *_, **__: made, describe_consumer_groups=lambda *_, **__: {"quotahost-doctor": Future()},
    )  # fmt: skip
    monkeypatch.setattr(kafka_rights, "_WAIT", 0.1)
    with pytest.raises(NoAnswer, match="doesn't answer in time"):
        kafka_rights.ask(admin, ("t",))
    made["t"].set_result(None)
    told = kafka_rights.ask(admin, ("t",), with_group=True)
    assert (told.missing, told.group) == ({"t": True}, True)


def test_nobody_there_is_wrong_and_a_listener_that_lets_only_others_in_is_so_with_credentials_alone(
    closing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_ANSWER", 5)
    told(0, [f"--    {closing} doesn't answer a client without credentials: the"], "doctor", "--against", closing)
    monkeypatch.setattr(doctor, "_ANSWER", 0.3)
    against = ("doctor", "--against", "127.0.0.1:1")
    told(1, ["WRONG 127.0.0.1:1 doesn't answer a client without credentials"], *against)
    told(1, (), *against, "--as", "pipeline")  # the operator asks for the pipeline's rights
    told(2, ["no can't be read"], *against, "--client-config", tmp_path / "no")
    told(1, ["WRONG  doesn't answer a client without credentials: no address is given"], "doctor", "--against", "")
    told(1, ["credentials: write HOST:PORT, separated"], "doctor", "--against", "127.0.0.1:1,http://127.0.0.1:1")
    told(1, ["credentials: no process listens on this address"], "doctor", "--against", "PLAINTEXT://127.0.0.1:1")
    told(2, ["--against is missing"], "doctor", "--client-config", tmp_path / "no", "--as", "pipeline")
    said = told(1, (), *against, properties_file(tmp_path, "node.id=1"))
    assert said.count("no process listens on") + said.count("stored values") == 1, "a failed connection is one finding"
    monkeypatch.setattr(doctor, "_ANSWER", 60)  # the reason is known sooner
    lines = f"{PREFIX}kafka.bootstrap.servers=127.0.0.1:2\n{PREFIX}kafka.sasl.password="
    words = ["127.0.0.1:2 doesn't answer with these credentials: no process listens on this address"]
    assert "hush" not in told(1, words, *against, properties_file(tmp_path, f"{lines}hush"))
    provided = properties_file(tmp_path, f"config.providers=file\n{lines}${{file:/x:y}}")
    told(1, ["not checked: only the broker knows"], *against, provided)
