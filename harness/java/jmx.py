"""Reads a node's MBeans from Python.

Tests read quotahost's and Kafka's metrics with it, ``harness.kafka.quotas`` the enforced quotas. The helper JVM
connects to the node and sends the values as JSON.
"""

from typing import Any, Final

from harness.java.helper import helper
from harness.kafka.node import KafkaNode


class Jmx:
    """The MBeans of a running node. Values arrive in JSON's types, all other values as text.

    The helper attaches to the node's process, so the node needs no JMX port. The first use starts the JVM's management
    agent in the node, which takes some memory, so a bench that measures memory must use JMX before it measures. Every
    method raises HelperError with Java's exception if the bean doesn't exist or the node doesn't answer.
    """

    def __init__(self, node: KafkaNode) -> None:
        self._node: Final = node

    def get(self, name: str, attribute: str) -> Any:
        """Returns one attribute of the bean with that object name."""
        return self._ask("jmx-get", name, attribute)

    def query(self, pattern: str) -> dict[str, dict[str, Any]]:
        """Returns the attributes of every bean that matches an object name pattern, by object name."""
        found: dict[str, dict[str, Any]] = self._ask("jmx-query", pattern)
        return found

    def _ask(self, command: str, *args: object) -> Any:
        return helper(self._node.version).ask(command, self._node.pid, *args)
