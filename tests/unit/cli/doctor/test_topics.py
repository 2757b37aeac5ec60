"""Who may do what with quotahost's topics, by properties and by a cluster; tests/broker asks real brokers."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest
from confluent_kafka.admin import AdminClient

from quotahost.cli.console import Finding, Level
from quotahost.cli.doctor import topics as cluster_check
from quotahost.cli.doctor.topics import check_cluster, check_rights, needed
from quotahost.cli.property_files import in_librdkafkas_names
from quotahost.errors import QuotahostError
from quotahost.kafka import rights as kafka_rights
from quotahost.kafka.admin import Shape
from quotahost.kafka.client import reach
from quotahost.kafka.rights import Acl, NoAnswer, Rights
from quotahost.records.topics import LOOKS, REFUSED, SHARES, SNAPSHOTS, TOPICS, USAGE, WATCH, Party
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from tests.unit.cli.commands import broker_file, run

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
FENCE = "authorizer.class.name=org.quotahost.QuotaFence"


OPEN = "allow.everyone.if.no.acl.found"
OPEN_TO_ALL = (f"authorizer.class.name={STANDARD}", f"{OPEN}=true")
UNSET = "authorizer.class.name is not set: everybody who can connect may write to "
SNAPSHOTS_READ, WATCHED = ".factor.source=snapshots", ".tasks=publish-usage"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], []),
        ([".factor.source=local"], []),
        ([WATCHED, f"authorizer.class.name={STANDARD}"], []),
        ([WATCHED, "process.roles=controller"], []),
        ([SNAPSHOTS_READ, ".tasks=", FENCE], []),
        ([SNAPSHOTS_READ, ".tasks=", f"authorizer.class.name={STANDARD}", f"{OPEN}=false"], []),
        ([SNAPSHOTS_READ, "process.roles=controller"], []),
        ([SNAPSHOTS_READ, ".tasks="], [f"{UNSET}__quotahost_snapshots, and this broker decides by that"]),
        ([SNAPSHOTS_READ, ".tasks=", ".topics.prefix=my_"], ["may write to my_snapshots, and"]),
        ([SNAPSHOTS_READ, ".tasks=", *OPEN_TO_ALL], [f"{OPEN} is true: unless ACLs are set for __quotahost_snapshots"]),
        ([".factor.source=cluster-volumes", ".tasks=", FENCE, ".fence.authorizer=none"],
         ["fence.authorizer is none: everybody"]),
        ([".supplier=cluster-quota", ".tasks=", FENCE, f"{OPEN}=TRUE"],
         [f"{OPEN} is true: unless ACLs are set for __quotahost_usage, __quotahost_shares,"]),
        ([WATCHED], [f"{UNSET}__quotahost_watch,"]),
        ([WATCHED, FENCE, ".fence.authorizer=none"], ["fence.authorizer is none: everybody who can connect may"]),
        ([WATCHED, *OPEN_TO_ALL], ["unless ACLs are set for them"]),
        ([WATCHED, ".topics.prefix=my_"], ["shows the names and rates of all clients, and read them in my_looks"]),
    ],
)  # fmt: skip
def test_topics_that_everybody_may_write_to_or_read_are_weak(
    found: Callable[..., list[Finding]], lines: list[str], words: list[str]
) -> None:
    findings = found(check_rights, *lines)
    assert [text in finding.text for text, finding in zip(words, findings, strict=True)] == [True] * len(words)
    assert all(finding.level is Level.WEAK and finding.remedy for finding in findings)


def test_the_declared_names_and_properties_are_those_of_brokers_and_of_the_pipeline() -> None:
    options = pytest.importorskip("quotahost.pipeline.options").Options(bootstrap="x", checkpoint="y")
    settings = Settings.from_properties({})
    assert {topic.name for topic in TOPICS if topic.brokers} == {
        settings.snapshots_topic, settings.cluster_volumes_topic, settings.usage_topic, settings.shares_topic,
        settings.watch_topic, settings.looks_topic, settings.quotas_topic,
    }  # fmt: skip
    for topic in (each for each in TOPICS if each.pipeline):
        given = getattr(options, topic.pipeline_option)
        assert topic.name in (given if isinstance(given, tuple) else (given,))


NONE = frozenset[str]()


def cluster(
    monkeypatch: pytest.MonkeyPatch, answer: Rights | NoAnswer, party: Party | None = None, **config: str
) -> list[tuple[Level, str]]:
    def ask(given: dict[str, str], topics: tuple[str, ...], with_group: bool) -> Rights:
        assert with_group == (party is Party.PLUGINS)
        assert given == {**config, "bootstrap.servers": "b:9092"}
        if isinstance(answer, NoAnswer):
            raise answer
        return answer

    monkeypatch.setattr(cluster_check, "ask", ask)
    return [(each.level, each.text) for each in check_cluster("b:9092", config, None, party)]


def test_a_cluster_without_an_authorizer_is_weak_once(monkeypatch: pytest.MonkeyPatch) -> None:
    open_to_all = {SNAPSHOTS.name: frozenset({"Write"})}
    everything = frozenset({"Alter", "Describe"})
    ((level, text),) = cluster(monkeypatch, Rights(open_to_all, everything, ()))
    assert level is Level.WEAK
    assert "b:9092 lets a client without credentials do everything: there is no authorizer, or" in text
    assert "may write to __quotahost_snapshots, " in text
    findings = cluster(monkeypatch, Rights(open_to_all, everything, ()), None, **{"sasl.username": "admin"})
    assert findings == [(Level.NOTE, "these credentials may Write __quotahost_snapshots")]


def test_closed_topics_are_good_and_acls_for_everybody_are_weak(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {SHARES.name: NONE}
    findings = cluster(monkeypatch, Rights(own, NONE, ()))
    assert findings == [(Level.GOOD, "a client without credentials has no right to quotahost's topics on b:9092")]
    acl = Acl(SHARES.name, "User:*", "prefixed __", "Write")
    findings = cluster(monkeypatch, Rights(own, NONE, (acl,)), None, **{"sasl.password": "secret"})
    assert [level for level, _ in findings] == [Level.WEAK, Level.GOOD]
    assert (
        "an ACL for prefixed __ lets everybody (User:*) Write __quotahost_shares: whoever does takes" in findings[0][1]
    )


def test_nobody_there_is_a_note_without_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ((level, text),) = cluster(monkeypatch, NoAnswer("timed out"), None, **{"sasl.password": "secret"})
    assert (level, text) == (Level.WRONG, "b:9092 doesn't answer with these credentials: timed out")
    monkeypatch.setattr(cluster_check, "ask", kafka_rights.ask)
    monkeypatch.setattr(kafka_rights, "_WAIT", 0.3)
    shown = run("doctor", "--against", "127.0.0.1:1")
    assert "127.0.0.1:1 doesn't answer a client without credentials" in shown.output
    missing = run("doctor", "--against", "127.0.0.1:1", "--client-config", tmp_path / "no")
    assert missing.exit_code != 0
    assert "can't be read" in missing.output + missing.stderr


def all_of(party: Party) -> dict[str, frozenset[str]]:
    return {topic.name: frozenset[str](topic.operations(party)) for topic in TOPICS}


@pytest.mark.parametrize("party", list(Party))
def test_each_right_that_a_party_lacks_is_wrong(monkeypatch: pytest.MonkeyPatch, party: Party) -> None:
    full = all_of(party)
    ((level, text),) = cluster(monkeypatch, Rights(full, NONE, ()), party, user="x")
    assert level is Level.GOOD
    assert text.startswith("these credentials have all that the ")
    for name, operations in needed(None, party).items():
        for operation in operations:
            rights = Rights(full | {name: full[name] - {operation}}, NONE, ())
            ((level, text),) = cluster(monkeypatch, rights, party, user="x")
            assert level is Level.WRONG
            assert f"these credentials may not {operation} {name}, which the " in text


def test_a_topic_that_is_missing_must_be_made_by_who_writes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    own = all_of(Party.PLUGINS)
    del own[SNAPSHOTS.name], own[SHARES.name]
    missing = {SNAPSHOTS.name: False, SHARES.name: False}
    ((level, text),) = cluster(monkeypatch, Rights(own, NONE, (), missing), Party.PLUGINS, user="x")
    assert (level, "may not Create __quotahost_snapshots, which doesn't exist" in text) == (Level.WRONG, True)


def test_settings_say_what_the_plugins_need() -> None:
    settings = Settings.from_properties(
        {f"{PREFIX}tasks": "publish-volumes", f"{PREFIX}factor.source": "snapshots", f"{PREFIX}topics.prefix": "my_"}
    )
    assert needed(settings, Party.PLUGINS) == {"my_snapshots": {"Read", "Write"}}
    assert needed(Settings.from_properties({f"{PREFIX}factor.source": "local"}), Party.PLUGINS) == {}


def test_cordon_needs_rights_on_the_cluster_and_followers_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.from_properties({f"{PREFIX}tasks": "cordon", f"{PREFIX}factor.source": "snapshots"})
    rights = Rights(all_of(Party.PLUGINS), frozenset({"DescribeConfigs"}), (), group=False)
    monkeypatch.setattr(cluster_check, "ask", lambda *_: rights)
    found = [f.text for f in check_cluster("b:1", {"user": "x"}, settings, Party.PLUGINS) if f.level is Level.WRONG]
    assert [text.split(", which")[0] for text in found] == [
        "these credentials may not Describe groups quotahost-*",
        "these credentials may not AlterConfigs on the cluster for the task cordon",
    ]


def of_acls(monkeypatch: pytest.MonkeyPatch, *acls: tuple[str, str, str]) -> list[tuple[Level, str]]:
    """What is said of these ACLs; each a principal, an operation and a topic."""
    given = tuple(Acl(topic, f"User:{who}", f"literal {topic}", operation) for who, operation, topic in acls)
    return cluster(monkeypatch, Rights({}, NONE, given), user="x")[:-1]


def test_a_second_writer_is_named_but_several_may_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Acl(USAGE.name, "User:quotahost", f"literal {USAGE.name}", "Write")
    other = Acl(USAGE.name, "User:mallory", "prefixed __", "All")
    level, text = cluster(monkeypatch, Rights({}, NONE, (one, other)), user="x")[0]
    assert level is Level.WEAK
    assert "User:mallory may All by the ACL for prefixed __; User:quotahost may Write by the ACL for literal" in text
    watch = [("ann", "Write", WATCH.name), ("bob", "Write", WATCH.name), ("brokers", "Create", WATCH.name)]
    assert of_acls(monkeypatch, *watch) == [
        (Level.GOOD, "ACLs let User:ann, User:bob write to __quotahost_watch, and watch")
    ]
    for operation in ("Delete", "Alter", "AlterConfigs", "All"):
        ((level, text),) = of_acls(monkeypatch, *watch, ("mallory", operation, WATCH.name))
        assert level is Level.WEAK
        assert f"do more than write to __quotahost_watch, which nobody needs: User:mallory may {operation} by" in text
        assert "User:ann" not in text


def test_whoever_may_delete_a_topic_and_not_write_to_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for others in ([("brokers", "Write", USAGE.name)], []):  # without any, the brokers are super users
        ((level, text),) = of_acls(monkeypatch, *others, ("mallory", "Delete", USAGE.name))
        assert level is Level.WEAK
        assert "let somebody change __quotahost_usage, and not to write to it: User:mallory may Delete by the" in text


def test_who_sees_the_names_and_rates_of_all_clients_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    watcher = [("ann", "Write", WATCH.name), ("ann", "Read", LOOKS.name), ("brokers", "Write", LOOKS.name)]
    findings = of_acls(monkeypatch, *watcher)
    assert {level for level, _ in findings} == {Level.GOOD}
    assert "ACLs let nobody else than User:ann Read __quotahost_looks, and they watch" in [text for _, text in findings]
    for operation in ("Read", "All"):
        found = dict(of_acls(monkeypatch, *watcher, ("mallory", operation, LOOKS.name)))
        assert "User:mallory Read __quotahost_looks, but not watch: whoever does sees the names" in found[Level.WEAK]


def test_a_right_beyond_a_partys_needs_is_weak(monkeypatch: pytest.MonkeyPatch) -> None:
    own = all_of(Party.PIPELINE) | {SNAPSHOTS.name: frozenset({"Read", "Write", "Alter"})}
    findings = cluster(monkeypatch, Rights(own, NONE, ()), Party.PIPELINE, user="x")
    assert [level for level, _ in findings] == [Level.GOOD, Level.WEAK]
    assert "may also Alter, Write __quotahost_snapshots" in findings[1][1]
    own = all_of(Party.PLUGINS)
    own[LOOKS.name] |= {"Read"}
    (*_, weak) = cluster(monkeypatch, Rights(own, NONE, ()), Party.PLUGINS, user="x")
    told = "these credentials may also Read __quotahost_looks: more than the brokers' plugins need"
    assert weak == (Level.WEAK, told), "the plugins need not see all clients"


def test_the_disks_of_one_broker_do_not_protect_a_cluster_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.from_properties({f"{PREFIX}static.storage.hard.min-free-bytes": "5G"})
    for brokers, said in ((1, 0), (3, 1)):
        monkeypatch.setattr(cluster_check, "ask", lambda *_: Rights({}, NONE, (), brokers=brokers))  # noqa: B023
        weak = [f.text for f in check_cluster("b:1", {"user": "x"}, settings) if "not cluster-wide" in f.text]
        assert len(weak) == said
    assert "b:1 has 3 brokers" in weak[0]


RIGHT = {
    "cleanup.policy": "compact",
    "min.insync.replicas": "1",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "LogAppendTime",
}


@pytest.mark.parametrize(
    ("replicas", "change", "level", "words"),
    [
        (3, {}, Level.GOOD, "are right: __quotahost_shares"),
        (3, {"cleanup.policy": "delete"}, Level.WRONG, "loses the records of silent brokers"),
        (1, {"min.insync.replicas": "2"}, Level.WRONG, "nobody can write to it"),
        (2, {"min.insync.replicas": "2"}, Level.WEAK, "one broker down ends all writing"),
        (3, {"max.message.bytes": "1000"}, Level.WEAK, "max.message.bytes=1000"),
        (3, {"message.timestamp.type": "CreateTime"}, Level.WEAK, "clocks of its writers"),
    ],
)
def test_how_a_topic_is_kept(
    monkeypatch: pytest.MonkeyPatch, replicas: int, change: dict[str, str], level: Level, words: str
) -> None:
    shapes = {SHARES.name: Shape(replicas, RIGHT | change)}
    found = cluster(monkeypatch, Rights({SHARES.name: NONE}, NONE, (), shapes=shapes), user="x")[-1]
    assert (found[0], words in found[1]) == (level, True), found


def test_dead_letters_need_no_compaction_and_what_is_not_shown_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = {REFUSED.name: Shape(1, RIGHT | {"cleanup.policy": "delete"}), SHARES.name: Shape(1, None)}
    found = cluster(monkeypatch, Rights({REFUSED.name: NONE}, NONE, (), shapes=shapes), user="x")[-2:]
    assert [level for level, _ in found] == [Level.GOOD, Level.NOTE]
    assert "configuration of __quotahost_shares is not checked" in found[1][1]


def test_credentials_that_are_not_understood_are_an_error_and_not_nobodys() -> None:
    for jaas in ('o.PlainLoginModule required username="u";', "o.Krb5LoginModule required useKeyTab=true;", "nonsense"):
        with pytest.raises(QuotahostError, match="names no username and password") as raised:
            in_librdkafkas_names({"sasl.jaas.config": jaas})
        assert jaas not in str(raised.value)
        assert in_librdkafkas_names({"sasl.jaas.config": jaas, "sasl.kerberos.principal": "p"})


@pytest.mark.parametrize("user", ['username="u"', '"username"="u"', "username=u", "'username'='u'"])
def test_the_file_of_javas_client_is_read_as_well(user: str) -> None:
    jaas = f'o.PlainLoginModule required {user} password="a \\"b\\" \\\\c";'
    made = in_librdkafkas_names({"sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas})
    assert made == {"sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": 'a "b" \\c'}
    pem = {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem"}
    assert in_librdkafkas_names(pem) == {"ssl.ca.location": "/ca.pem"}
    with pytest.raises(QuotahostError, match="reads PEM files only"):
        in_librdkafkas_names({"ssl.keystore.location": "/secret.jks"})


@pytest.fixture
def closing() -> Iterator[str]:
    """A server that closes each connection once it has heard something, as Kafka does for another protocol."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(1000)

        Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "its listener asks for another security.protocol"),
        ({"security.protocol": "SSL"}, "TLS fails: either its listener has no TLS, or"),
        ({"bootstrap.servers": "127.0.0.1:1"}, "nobody listens there"),
        ({"no.such.option": "secret"}, "No such configuration property"),
    ],
)
def test_why_nobody_answers_is_said_in_words(closing: str, config: dict[str, str], words: str) -> None:
    with pytest.raises(NoAnswer, match=words) as raised:
        reach({"bootstrap.servers": closing} | config, 2)
    assert "secret" not in str(raised.value)


def test_a_broker_that_connects_and_then_is_silent_ends_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """librdkafka's own model of a broker gives metadata, and never says who may do what."""
    mock = AdminClient({"test.mock.num.brokers": 1, "log_level": 0})
    (address,) = mock.list_topics(timeout=10).brokers.values()
    monkeypatch.setattr(kafka_rights, "_WAIT", 0.5)
    with pytest.raises(NoAnswer, match="doesn't answer in time"):
        kafka_rights.ask({"bootstrap.servers": f"{address.host}:{address.port}"}, ("t",))


def test_the_properties_own_client_is_tried_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_rights, "_WAIT", 2)
    lines = [f"{PREFIX}kafka.bootstrap.servers=127.0.0.1:1", f"{PREFIX}kafka.sasl.password=hush"]
    own = broker_file(tmp_path, *lines).path
    tried = run("doctor", own, "--against", "127.0.0.1:1")
    assert "doesn't answer with these credentials: nobody listens there" in tried.output
    assert "hush" not in tried.output
    assert tried.exit_code == 1
    lines += ["config.providers=file", f"{PREFIX}kafka.sasl.password=${{file:/x:y}}"]
    own = broker_file(tmp_path, *lines).path
    assert "not checked: only the broker knows" in run("doctor", own, "--against", "127.0.0.1:1").output
