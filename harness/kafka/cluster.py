"""Several nodes of one Kafka cluster."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, Final, Self

from harness.kafka.node import KafkaNode
from harness.kafka.settings import new_cluster_id

_STOP_TIMEOUT: Final = 45.0  # seconds


class Cluster:
    """Nodes on loopback: all brokers and controllers at once, or controllers apart from brokers.

    Attributes:
        controllers: the nodes that only control, ids from 1001; none in a combined cluster.
        brokers: the nodes that serve clients, ids from 1.
    """

    def __init__(self, directory: Path, brokers: int = 3, controllers: int = 0, **settings: Any) -> None:
        """Chooses ports; nothing is started yet.

        Args:
            directory: each node gets a directory in it.
            brokers: how many.
            controllers: how many besides; 0 makes every broker a controller too.
            settings: of every node, as for KafkaNode.
        """
        shared = settings | {"cluster_id": new_cluster_id(), "brokers": brokers}
        roles = "broker" if controllers else "broker,controller"
        self.controllers: Final = [
            KafkaNode(directory / f"node-{n}", node_id=n, roles="controller", **shared)
            for n in range(1001, 1001 + controllers)
        ]
        self.brokers: Final = [
            KafkaNode(directory / f"node-{n}", node_id=n, roles=roles, **shared)
            for n in range(1, brokers + 1)
        ]
        voters = ",".join(node.voter for node in self.controllers or self.brokers)
        for node in self.nodes:
            node.voters = voters

    @property
    def nodes(self) -> list[KafkaNode]:
        """All of them, controllers first."""
        return [*self.controllers, *self.brokers]

    @property
    def bootstrap(self) -> str:
        """``bootstrap.servers`` with every broker's listener without users."""
        return ",".join(node.bootstrap for node in self.brokers)

    def client_config(self, user: str | None = None, client_id: str | None = None) -> dict[str, Any]:
        """The librdkafka configuration of a client: as one of the users, or as ANONYMOUS."""
        configs = [node.client_config(user, client_id) for node in self.brokers]
        return configs[0] | {"bootstrap.servers": ",".join(each["bootstrap.servers"] for each in configs)}

    def start(self, timeout: float = 180) -> Self:
        """Starts all nodes and waits until a client sees every broker.

        Raises:
            StartFailed: a node ended or was not ready within timeout seconds; none is left running.
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

    def stop(self) -> None:
        """Ends the nodes that run: all brokers, then controllers, which brokers need to end in order.

        Of nodes that are both, the last may wait in vain for a quorum that is gone: after a while it is killed.
        """
        for group in (self.brokers, self.controllers):
            running = [node for node in group if node.running]
            with ThreadPoolExecutor(max(1, len(running))) as pool:
                list(pool.map(self._stop, running))

    def _stop(self, node: KafkaNode) -> None:
        with suppress(TimeoutError) if not self.controllers else nullcontext():
            node.stop(_STOP_TIMEOUT)

    def kill(self) -> None:
        """Ends the nodes with SIGKILL."""
        for node in self.nodes:
            node.kill()

    def __enter__(self) -> Self:
        """Starts it."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stops the nodes that still run."""
        try:
            self.stop()
        finally:
            self.kill()
