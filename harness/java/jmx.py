"""A node's MBeans, read and called from Python."""

from __future__ import annotations

from typing import Any, Final

from harness.java.helper import helper
from harness.kafka.node import KafkaNode


class Jmx:
    """The MBeans of a running node; values arrive as JSON's types, others as text.

    It attaches to the node's process and needs no JMX port. The first use starts the JVM's
    management agent there, which takes some memory: where that is measured, measure before.
    Every method raises HelperError with Java's exception if the bean or the node does not answer.
    """

    def __init__(self, node: KafkaNode) -> None:
        """The node may be started, or started again, later."""
        self._node: Final = node

    def get(self, name: str, attribute: str) -> Any:
        """One attribute of the bean with that object name."""
        return self._ask("jmx-get", name, attribute)

    def query(self, pattern: str) -> dict[str, dict[str, Any]]:
        """The attributes of every bean that matches an object name pattern, by object name."""
        found: dict[str, dict[str, Any]] = self._ask("jmx-query", pattern)
        return found

    def call(self, name: str, operation: str, *args: str) -> Any:
        """The result of an operation, whose parameters are strings."""
        return self._ask("jmx-call", name, operation, args)

    def _ask(self, command: str, *args: object) -> Any:
        return helper(self._node.version).ask(command, self._node.pid, *args)
