"""The actions of an operator on a running cluster: topics, client quotas, broker configs, kafka-configs.sh.

librdkafka's Admin client creates and deletes topics. The helper JVM does the rest, with Kafka's own Admin client and
command line tools, because librdkafka lacks client quotas.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, TypeVar

from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from harness.java.helper import HelperError, helper
from harness.java.jars import maven_jar
from harness.kafka.cluster import Cluster
from harness.kafka.node import KafkaNode
from harness.system.waiting import eventually

T = TypeVar("T")

# The answer of a broker's plugin to a change that it had no time to check; the answer takes some seconds.
_NOT_CHECKED: Final = "Try again"
_ATTEMPTS: Final = 10


class Default(Enum):
    """Kafka's ``<default>`` entity."""

    DEFAULT = "<default>"


DEFAULT: Final = Default.DEFAULT


class ToolFailed(Exception):
    """A Kafka command line tool ended with an exit code other than 0; the message is its output."""


def _admin(node: KafkaNode | Cluster) -> AdminClient:
    # librdkafka logs the end of each client at level 6, which would stand amid the demo's lines.
    return AdminClient(node.client_config(client_id="harness") | {"log_level": 4})


def create_topic(
    node: KafkaNode, topic: str, partitions: int = 1, replicas: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Creates a topic and waits until every partition has a leader, also while a cluster does not create topics yet."""
    admin = _admin(node)
    _create(admin, [NewTopic(topic, partitions, replicas, config=dict(config or {}))])

    def has_leaders() -> bool:
        known = admin.list_topics(topic, timeout=30).topics[topic].partitions
        return len(known) == partitions and all(each.leader >= 0 for each in known.values())

    eventually(has_leaders, what=f"leaders of {topic}")


def creates(config: Mapping[str, Any], topic: str, partitions: int, replicas: int, refusals: list[str]) -> bool:
    """Returns whether one try of a new client creates a topic; refusals by a broker are added to ``refusals``.

    A cluster that doesn't answer yet, or in which no broker is registered yet, refuses nothing.
    """
    # A client that was there before the brokers would wait longer and longer between its tries.
    admin = AdminClient(dict(config))
    try:
        admin.create_topics([NewTopic(topic, partitions, replicas)], request_timeout=5)[topic].result(10)
    except TimeoutError:
        return False
    except KafkaException as failure:
        error: KafkaError = failure.args[0]
        if error.name() == "TOPIC_ALREADY_EXISTS":  # the answer to the previous try came too late
            return True
        # A code below 0 means that no broker answers; a busy controller answers later.
        if error.code() >= 0 and error.name() not in ("INVALID_REPLICATION_FACTOR", "REQUEST_TIMED_OUT"):
            refusals.append(f"{error.name()}: {error.str()}")
        return False
    return True


def place_topics(node: KafkaNode | Cluster, brokers: Mapping[str, int | Sequence[int]]) -> None:
    """Creates topics of one partition on the given brokers; ``brokers`` is by topic: one, or the leader and others."""
    admin = _admin(node)
    placed = {topic: [at] if isinstance(at, int) else list(at) for topic, at in brokers.items()}
    _create(admin, [NewTopic(topic, 1, replica_assignment=[replicas]) for topic, replicas in placed.items()])


def _create(admin: AdminClient, topics: Sequence[NewTopic]) -> None:
    """Creates topics, and retries while a policy of the cluster forbids it: the policy may not know its disks yet."""

    def created() -> bool:
        try:
            for future in admin.create_topics(list(topics)).values():
                future.result(60)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.POLICY_VIOLATION:
                return False
            raise
        return True

    eventually(created, what="topics created")


def delete_topics(node: KafkaNode | Cluster, *topics: str, timeout: float = 30) -> None:
    """Deletes topics. Kafka deletes their files ``log.segment.delete.delay.ms`` later."""
    admin = _admin(node)
    for deleted in admin.delete_topics(list(topics)).values():
        deleted.result(timeout)


def set_quota(
    node: KafkaNode,
    quotas: Mapping[str, float | None],
    user: str | Default | None = None,
    client_id: str | Default | None = None,
) -> None:
    """Sets client quotas with the Admin API (KIP-546); brokers apply them some milliseconds later.

    Args:
        node: a broker of the cluster.
        quotas: numbers by Kafka's keys ``producer_byte_rate``, ``consumer_byte_rate`` (bytes/s),
            ``request_percentage``, ``controller_mutation_rate``; None removes a quota.
        user: the user that the quotas are for; with client_id they are for the pair.
        client_id: the client-id that they are for.
    """
    named = {"user": user, "client-id": client_id}
    entity = {kind: None if name is DEFAULT else name for kind, name in named.items() if name is not None}
    _ask(node, "alter-quotas", [{"entity": entity, "set": dict(quotas)}])


def describe_quotas(node: KafkaNode) -> list[tuple[dict[str, str | Default], dict[str, float]]]:
    """Returns all client quotas of the cluster: entity (``user``, ``client-id``) and numbers by Kafka's keys."""
    return [
        ({kind: DEFAULT if name is None else name for kind, name in each["entity"].items()}, each["quotas"])
        for each in _ask(node, "describe-quotas")
    ]


def alter_broker_config(node: KafkaNode, config: Mapping[str, str | None], broker: int | None = None) -> None:
    """Changes dynamic configs of one broker, or with ``broker=None`` of all brokers; a value None removes a config.

    If a plugin had no time to check a change, on a busy machine, the change is sent again, as its message asks.

    Raises:
        HelperError: a broker did not accept the change; the message has its reason.
    """
    _until_checked(lambda: _ask(node, "alter-configs", "BROKER", "" if broker is None else str(broker), dict(config)))


def alter_config(node: KafkaNode, kind: str, name: str, config: Mapping[str, str | None]) -> None:
    """Changes configs of a ``TOPIC`` or a ``GROUP``; a value None removes a config."""
    _ask(node, "alter-configs", kind, name, dict(config))


def unregister_broker(node: KafkaNode, broker: int) -> None:
    """Removes a broker's registration from the cluster, as ``kafka-cluster.sh unregister`` does."""
    _ask(node, "unregister", broker)


def reassign(node: KafkaNode | Cluster, topic: str, replicas: Sequence[int]) -> None:
    """Moves partition 0 of a topic to these brokers, makes the first of them the leader, and waits for both.

    A broker that loses its replica deletes it soon after; this function does not wait for that.
    """
    first = node.brokers[0] if isinstance(node, Cluster) else node
    _ask(first, "reassign", topic, list(replicas))
    admin = _admin(node)

    def found() -> Any:
        return admin.list_topics(topic, timeout=30).topics[topic].partitions[0]

    eventually(
        lambda: sorted(found().isrs) == sorted(replicas) == sorted(found().replicas), what=f"replicas of {topic}"
    )
    if found().leader != replicas[0]:
        admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(topic, 0)]).result(30)
    eventually(lambda: found().leader == replicas[0], what=f"leader of {topic}")


def kafka_configs(node: KafkaNode, *args: str) -> str:
    """Runs the class of ``kafka-configs.sh`` in the helper JVM, with ``--bootstrap-server`` and these arguments.

    Returns:
        The tool's output.

    Raises:
        ToolFailed: its exit code was not 0.
    """
    return _until_checked(
        lambda: _run_tool(node, "kafka.admin.ConfigCommand", None, "--bootstrap-server", node.bootstrap, *args)
    )


def kafka_tool(node: KafkaNode, name: str, *args: str) -> str:
    """Runs ``AclCommand``, ``TopicCommand`` or another tool that brokers' jars lack, with only these arguments.

    Returns:
        The tool's output.

    Raises:
        ToolFailed: its exit code was not 0.
    """
    jars = str(maven_jar(f"org.apache.kafka:kafka-tools:{node.version}"))
    return _run_tool(node, f"org.apache.kafka.tools.{name}", jars, *args)


def _run_tool(node: KafkaNode, name: str, jars: str | None, *args: str) -> str:
    code, output = helper(node.version).ask("tool", name, jars, *args)
    if code != 0:
        raise ToolFailed(f"{name} {' '.join(args)}: exit code {code}\n{output}")
    return str(output)


def _until_checked(change: Callable[[], T]) -> T:
    for _ in range(_ATTEMPTS - 1):
        try:
            return change()
        except (HelperError, ToolFailed) as refused:
            if _NOT_CHECKED not in str(refused):
                raise
    return change()


def _ask(node: KafkaNode, command: str, *args: object) -> Any:
    return helper(node.version).ask(command, node.bootstrap, *args)
