"""Kafka's own client quotas have the same limits, and KIP-599's refusals, on brokers with and without the plugin.

A client's token bucket holds ten seconds of its rate here, so a bucket of 0.1 mutations/s holds a single token. If a
request has three topics of one partition, the first topic leaves no token, the second one owes a token, and Kafka
refuses the third one for 10 s.
"""

import re
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pytest
from confluent_kafka.admin import AdminClient

from harness.clients.mutations import mutate
from harness.clients.producer import ProducerLoad
from harness.clients.raw import QUOTA_EXCEEDED, Kind, RawClient, RoundTrip, now_ms
from harness.java.jmx import Jmx
from harness.kafka.admin import DEFAULT, ToolFailed, create_topic, kafka_tool, set_quota
from harness.kafka.node import KafkaNode
from harness.kafka.quotas import EnforcedQuota, enforced_quotas
from harness.system.waiting import eventually
from tests.broker.support.node import callback_node

KINDS: Final[tuple[Kind, ...]] = ("create", "grow", "delete")
USER: Final = "us:er ü"
CLIENT: Final = "cli:ent ü"
USERS: Final = {USER: "a"}
RATE: Final = "producer_byte_rate"
KEY: Final = "controller_mutation_rate"
BURST_S: Final = 10  # controller.quota.window.num
ONE_TOKEN: Final = 1 / BURST_S  # the rate whose bucket holds one token
#: The entities of Kafka's eight levels of client quotas, the most general first.
LEVELS: Final[tuple[dict[str, Any], ...]] = (
    {"client_id": DEFAULT},
    {"client_id": CLIENT},
    {"user": DEFAULT},
    {"user": DEFAULT, "client_id": DEFAULT},
    {"user": DEFAULT, "client_id": CLIENT},
    {"user": USER},
    {"user": USER, "client_id": DEFAULT},
    {"user": USER, "client_id": CLIENT},
)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, KafkaNode]]:
    properties = {"controller.quota.window.num": str(BURST_S)}
    stock = KafkaNode(tmp_path_factory.mktemp("stock"), users=USERS, probe=True, properties=properties)
    with_plugin = callback_node(tmp_path_factory.mktemp("hosted"), users=USERS, properties=properties)
    with stock, with_plugin:
        for node in (stock, with_plugin):
            create_topic(node, "t")
        yield {"stock": stock, "plugin": with_plugin}


# ---- rates, at all eight levels ----


@pytest.mark.proves("kip-13.client-id", "kip-13.dynamic-config", "kip-599.levels")
def test_every_level_gives_a_producer_the_tags_and_limit_of_the_stock_broker(nodes: dict[str, KafkaNode]) -> None:
    up = [(level, 1e6 * n, 1e6 * n) for n, level in enumerate(LEVELS, start=1)]
    down = [(level, None, 1e6 * (n - 1)) for n, level in reversed(list(enumerate(LEVELS, start=1)))]
    with ThreadPoolExecutor(len(nodes)) as both:
        for level, rate, expected in up + down[:-1]:
            after = partial(tags_after, level=level, rate=rate, expected=expected)
            stock, with_plugin = both.map(after, nodes.values())
            assert stock == with_plugin, level
    for node in nodes.values():
        set_quota(node, {RATE: None}, client_id=DEFAULT)


def tags_after(node: KafkaNode, level: dict[str, Any], rate: float | None, expected: float) -> dict[str, str]:
    """Sets the rate of a level; returns the tags of the client's sensor once it has the expected bound."""
    set_quota(node, {RATE: rate}, **level)

    def with_bound() -> dict[str, str]:
        tags, bound = quota_in_force(node)
        assert bound == expected
        return tags

    return eventually(with_bound, poll=0.1)


def quota_in_force(node: KafkaNode) -> tuple[dict[str, str], float | None]:
    """The tags and the bound of the sensor that counts the client's next records."""
    before = {tuple(q.tags.items()): q.value for q in enforced_quotas(node, "PRODUCE")}

    def risen() -> list[EnforcedQuota]:
        mine = [q for q in enforced_quotas(node, "PRODUCE") if "<" not in q.tags["user"]]
        return [q for q in mine if q.value > before.get(tuple(q.tags.items()), 0)]

    with ProducerLoad(node.client_config(USER, CLIENT), "t", rate=500_000) as load:
        eventually(lambda: load.meter.bytes > 50_000)
        now = eventually(risen)
    assert len(now) == 1  # two, if the former sensor still counted the first records
    return now[0].tags, now[0].bound


# ---- mutations: no quota ----


def buckets(node: KafkaNode, client: RawClient, rate: float, **tags: str) -> list[EnforcedQuota]:
    """The buckets of this rate; deleting a topic that doesn't exist makes the client's bucket and costs no token."""
    client.mutate("delete", {"none": 0})
    return [each for each in enforced_quotas(node, "CONTROLLER_MUTATION", **tags) if each.bound == rate]


def limited(node: KafkaNode, client_id: str, rate: float = ONE_TOKEN) -> RawClient:
    """A connection of a client whose quota is in force, and whose bucket is full."""
    set_quota(node, {KEY: rate}, client_id=client_id)
    client = RawClient(node, client_id)
    eventually(lambda: buckets(node, client, rate, client_id=client_id))
    return client


def partitions(node: KafkaNode, topics: Collection[str]) -> dict[str, int]:
    """The number of partitions of each of these topics that exists."""
    known = AdminClient(node.client_config(client_id="harness")).list_topics(timeout=30).topics
    return {name: len(known[name].partitions) for name in topics if name in known}


@pytest.mark.proves("kip-599.unlimited")
@pytest.mark.parametrize("node", ["stock", "plugin"])
def test_a_client_without_a_quota_creates_as_much_as_it_likes(nodes: dict[str, KafkaNode], node: str) -> None:
    with RawClient(nodes[node], "free") as client:
        # Kafka also charges a request that only validates, so the test needn't create thousands of partitions.
        for topics, validate_only in (({"free": 5000}, True), ({"free-1": 2, "free-2": 2}, False)):
            answer = client.mutate("create", topics, validate_only=validate_only)
            assert (answer.errors, answer.throttle_ms) == (dict.fromkeys(topics, (0, None)), 0)
    eventually(lambda: partitions(nodes[node], topics) == topics)


# ---- refused, partly accepted, muted ----


@dataclass(frozen=True)
class Scene:
    """A request of a client with one token, for topics of one partition: three if the client is strict, else two."""

    answer: RoundTrip  # the answer to the request
    again: RoundTrip  # the answer to the last topic alone, over a connection that isn't muted
    silent_ms: int  # from sending the request to the answer to the next one over the same connection


@pytest.fixture(scope="module")
def scenes(nodes: dict[str, KafkaNode]) -> dict[tuple[str, Kind, bool], Scene]:
    """The scenes by node, kind and strictness; they run in parallel, because each client is muted for 10 s."""
    keys = [(name, kind, strict) for name in nodes for kind in KINDS for strict in (True, False)]
    clients = [prepared(nodes[name], kind, strict) for name, kind, strict in keys]
    with ThreadPoolExecutor(len(keys)) as pool:
        played = pool.map(lambda key, client: play(nodes[key[0]], client, *key[1:]), keys, clients)
        return dict(zip(keys, played, strict=True))


def names(kind: Kind, strict: bool) -> list[str]:
    return [f"{kind}-{strict}-{n}" for n in range(3 if strict else 2)]


def prepared(node: KafkaNode, kind: Kind, strict: bool) -> RawClient:
    if kind != "create":
        mutate(node, "maker", "create", dict.fromkeys(names(kind, strict), 1))
    return limited(node, f"{kind}-{strict}")


def play(node: KafkaNode, client: RawClient, kind: Kind, strict: bool) -> Scene:
    wanted = dict.fromkeys(names(kind, strict), 2 if kind == "grow" else 1)
    with client, RawClient(node, f"{kind}-{strict}") as other:
        answer = client.mutate(kind, wanted, strict=strict)
        client.ping()
        left = [name for name, (code, _) in answer.errors.items() if code]
        again = other.mutate(kind, {left[0]: wanted[left[0]]}) if left else answer
        assert client.has_response(within=60)
        return Scene(answer, again, now_ms() - answer.sent_ms)


# Kafka omits the error's default message (ApiError.fromThrowable), and Kafka's client adds it again.
EXCEEDED: Final = (QUOTA_EXCEEDED, None)
MESSAGE: Final = "The throttling quota has been exceeded."
BOTH: Final = ("stock", "plugin")


@pytest.mark.proves("kip-599.refused-not-queued", "kip-599.mutations", "kip-599.versions", "kip-599.delete-message")
@pytest.mark.proves("kip-599.strict-mute", "kip-599.throttle-time")
@pytest.mark.parametrize("node", BOTH)
@pytest.mark.parametrize("kind", KINDS)
def test_a_strict_client_has_its_request_partly_accepted_the_rest_refused_and_is_muted_for_the_throttle_time(
    nodes: dict[str, KafkaNode], scenes: dict[tuple[str, Kind, bool], Scene], node: str, kind: Kind
) -> None:
    """ "The channel will be muted as well when throttle_time_ms > 0" (Handling of new Clients)."""
    scene = scenes[node, kind, True]
    assert 0 < scene.answer.throttle_ms <= BURST_S * 1000
    assert scene.silent_ms >= scene.answer.throttle_ms - 2
    accepted = [name for name, error in scene.answer.errors.items() if error[0] == 0]
    (left,) = set(names(kind, True)) - set(accepted)
    assert scene.answer.errors[left] == EXCEEDED
    assert scene.again.errors == {left: EXCEEDED}, "while the client owes tokens, Kafka accepts nothing"
    expected = {
        "create": dict.fromkeys(accepted, 1),
        "grow": {**dict.fromkeys(accepted, 2), left: 1},
        "delete": {left: 1},
    }[kind]
    eventually(lambda: partitions(nodes[node], names(kind, True)) == expected)


@pytest.mark.proves("kip-599.old-clients", "kip-599.old-clients-message", "kip-599.old-clients-timeout")
@pytest.mark.proves("kip-599.versions")
@pytest.mark.parametrize("node", BOTH)
@pytest.mark.parametrize("kind", KINDS)
def test_an_older_client_gets_everything_without_a_message_and_is_muted(
    nodes: dict[str, KafkaNode], scenes: dict[tuple[str, Kind, bool], Scene], node: str, kind: Kind
) -> None:
    """The KIP: "we will also populate the ErrorMessage to explain that they have been throttled" (old Clients).

    Kafka 4.3.1 doesn't: ``PermissiveControllerMutationQuota`` throws nothing, so ReplicationControlManager leaves the
    message null. An older client learns of its throttling only by ``throttle_time_ms``.
    """
    scene = scenes[node, kind, False]
    assert scene.answer.errors == dict.fromkeys(names(kind, False), (0, None))
    assert 0 < scene.answer.throttle_ms <= BURST_S * 1000
    assert scene.answer.duration_ms < scene.answer.throttle_ms, "the broker sends the response without a delay"
    assert scene.silent_ms >= scene.answer.throttle_ms - 2
    expected = {"create": {1}, "grow": {2}, "delete": set()}[kind]
    eventually(lambda: set(partitions(nodes[node], names(kind, False)).values()) == expected)


# ---- Kafka's own clients ----


@pytest.mark.proves("kip-599.retry", "kip-599.no-retry")
def test_kafkas_client_tries_again_until_it_succeeds_unless_told_otherwise(nodes: dict[str, KafkaNode]) -> None:
    node = nodes["plugin"]
    for client_id in ("impatient", "patient"):
        with limited(node, client_id, rate=1):
            pass
    before, begin = requests(node), now_ms()
    topics = {"big": BURST_S + 1, "late": 1}  # one token is owed after the first
    outcome = mutate(node, "impatient", "create", topics, retry=False)
    error = outcome["late"]
    assert outcome["big"] is None
    assert error is not None
    assert (error.error, error.message) == ("ThrottlingQuotaExceededException", MESSAGE)
    assert 1000 - (now_ms() - begin) <= error.throttle_ms <= 1000
    eventually(lambda: requests(node) - before == 2, what="broker and controller count one request each")

    before, begin = requests(node), now_ms()
    topics = {"first": BURST_S + 1, "second": 1}
    assert mutate(node, "patient", "create", topics, retry=True) == dict.fromkeys(topics)
    assert now_ms() - begin >= 1000 - 2, "the second topic can't be created immediately"
    eventually(lambda: requests(node) - before == 4, what="the client retries once, after the throttle time")


def requests(node: KafkaNode) -> int:
    """The number of requests to create topics that the node has answered, by Kafka's own meters of all versions."""
    beans = Jmx(node).query("kafka.network:type=RequestMetrics,name=RequestsPerSec,request=CreateTopics,version=*")
    return sum(int(bean["Count"]) for bean in beans.values())


@pytest.mark.proves("kip-599.topics-command")
@pytest.mark.long
def test_kafka_topics_sh_does_not_try_again(nodes: dict[str, KafkaNode]) -> None:
    """Kafka's client retries by default, and a retry after the throttle time would succeed."""
    node = nodes["plugin"]
    mutate(node, "maker", "create", {"of-the-tool": 1})
    to = ["--bootstrap-server", node.bootstrap, "--command-config", str(node.directory / "tool.properties"), "--topic"]
    for number, command in enumerate((
        ["new-of-the-tool", "--create", "--partitions", "1"],
        ["of-the-tool", "--alter", "--partitions", "2"],
        ["of-the-tool", "--delete"],
    )):  # fmt: skip
        # Each command has its own client-id, since the tool may wait for the throttle time when it closes its client.
        tool = f"tool-{number}"
        (node.directory / "tool.properties").write_text(f"client.id={tool}\n")
        with limited(node, tool) as client:
            client.mutate("create", {"big": 13}, validate_only=True)  # 12 tokens are owed, for 120 s
        with pytest.raises(ToolFailed, match=re.escape(MESSAGE)):
            kafka_tool(node, "TopicCommand", *to, *command)
    assert partitions(node, ["of-the-tool", "new-of-the-tool"]) == {"of-the-tool": 1}
