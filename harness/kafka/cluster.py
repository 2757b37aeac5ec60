"""Several nodes of one Kafka cluster, started and ended together.

Tests of the fence, of cluster-wide quotas and of the factor sources need brokers that depend on each other. Each
node is a ``KafkaNode``; this class gives them a common cluster id and quorum, and starts and ends them.
"""

from pathlib import Path
from typing import Any, Final, Self

from harness.kafka.node import KafkaNode
from harness.kafka.settings import new_cluster_id


class Cluster:
    """Nodes on loopback. Either each is broker and controller, or controllers are separate nodes.

    Attributes:
        controllers: the nodes that are only controllers, with ids from 1001; empty in a combined cluster.
        brokers: the nodes that serve clients, with ids from 1.
    """

    def __init__(self, directory: Path, brokers: int = 3, controllers: int = 0, **settings: Any) -> None:
        """Chooses the ports; starts nothing yet.

        Args:
            directory: each node gets a directory of its own in it.
            brokers: the number of brokers.
            controllers: the number of separate controllers; 0 makes every broker a controller, too.
            settings: arguments of KafkaNode for every node.
        """
        shared = settings | {"cluster_id": new_cluster_id(), "brokers": brokers}
        roles = "broker" if controllers else "broker,controller"
        self.controllers: Final = [
            KafkaNode(directory / f"node-{n}", node_id=n, roles="controller", **shared)
            for n in range(1001, 1001 + controllers)
        ]
        self.brokers: Final = [
            KafkaNode(directory / f"node-{n}", node_id=n, roles=roles, **shared) for n in range(1, brokers + 1)
        ]
        voters = ",".join(node.voter for node in self.controllers or self.brokers)
        for node in self.nodes:
            node.voters = voters

    @property
    def nodes(self) -> list[KafkaNode]:
        """All nodes, controllers first."""
        return [*self.controllers, *self.brokers]

    @property
    def bootstrap(self) -> str:
        """``bootstrap.servers`` with all brokers, for clients without a user."""
        return ",".join(node.bootstrap for node in self.brokers)

    def client_config(self, user: str | None = None, client_id: str | None = None) -> dict[str, Any]:
        """Returns the librdkafka properties of a client that connects as one of the users, or as ANONYMOUS."""
        configs = [node.client_config(user, client_id) for node in self.brokers]
        return configs[0] | {"bootstrap.servers": ",".join(each["bootstrap.servers"] for each in configs)}

    def start(self, timeout: float = 180) -> Self:
        """Starts all nodes and waits until a client sees every broker.

        Raises:
            StartFailed: a node ended, or was not ready within timeout seconds; no node is left running.
        """
        ids = {node.node_id for node in self.brokers}
        try:
            for node in self.nodes:
                node.launch()
            for node in self.nodes:
                node.wait_until_ready(timeout)
            for node in self.brokers:
                node.wait_for_brokers(ids, timeout)
        except BaseException:
            self.kill()
            raise
        return self

    def kill(self) -> None:
        """Kills all nodes with SIGKILL."""
        for node in self.nodes:
            node.kill()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()  # a clean stop takes 10 s, since the last nodes wait for a lost quorum; the data is not needed
