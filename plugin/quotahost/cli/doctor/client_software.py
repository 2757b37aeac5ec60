"""Says which connected clients use a library that gives up early in a PAUSE (docs/clients.md).

Kafka's protocol doesn't tell who is connected. The brokers of this machine do, by their admin sockets: their gauges
``ImpatientClients`` count connections by what the clients call their software (KIP-511).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from quotahost.cli.console import Finding, good, note, weak
from quotahost.cli.explain.broker_socket import BrokerSocket, Unanswered, running

_REMEDY: Final = "the settings of docs/clients.md, and a drill (docs/operate.md), which shows who gives up"
_WHO: Final = {
    "sarama": "use sarama, which reports records as failed 0.3 s after a PAUSE began unless it is told to go on",
    "unknown": "don't name their software: kafka-go, kafkajs, aiokafka and kafka-python 2 don't, and report records "
    "as failed 0 to 40 s after a PAUSE began unless they are told to go on",
}  # fmt: skip


def check_client_software() -> Iterator[Finding]:
    """What the brokers of this machine say of the software of their clients."""
    refused: list[str] = []
    brokers = running(refused)
    if not brokers:
        yield note("the software of clients is not known: no broker of this machine can be asked by this user")
        return
    connections = Counter[str]()
    asked = 0
    for broker in brokers:
        try:
            with BrokerSocket(broker) as connection:
                gauges = connection.ask("gauges")
        except Unanswered as problem:
            yield note(f"broker {broker.node} (pid {broker.pid}) doesn't tell the software of its clients: {problem}")
            continue
        asked += 1
        for kind, software, _, count in gauges:
            if kind == "ImpatientClients" and software in _WHO:
                connections[software] += int(float(count))
    impatient = {software: count for software, count in connections.items() if count}
    yield from (weak(f"{count} connections {_WHO[software]}", _REMEDY) for software, count in impatient.items())
    if asked and not impatient:
        yield good("no connected client has a library that is known to give up early in a PAUSE")
