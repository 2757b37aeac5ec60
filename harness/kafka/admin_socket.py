"""Asks a node with quotahost through its admin socket, as ``quotahost explain`` does."""

from typing import Any

from harness.kafka.node import KafkaNode
from quotahost.broker.host.dump import BrokerState, QuotaState
from quotahost.cli.explain.answer import parse
from quotahost.cli.explain.broker_socket import connected, running
from quotahost.model import Client, QuotaType


def ask(node: KafkaNode, *words: str) -> Any:
    """Returns the node's answer to a question.

    Raises:
        LookupError: the node has no socket (yet).
        Unusable: the node doesn't answer.
    """
    found = [broker for broker in running() if broker.pid == node.pid]
    if not found:
        raise LookupError(f"process {node.pid} has no admin socket")
    with connected(found[0]) as put:
        return put(*words)


def state_now(node: KafkaNode) -> BrokerState:
    """Returns the state that all clients share."""
    return BrokerState.of(ask(node, "state"))


def quota_now(node: KafkaNode, principal: str, client_id: str, quota_type: str = "PRODUCE") -> QuotaState:
    """Returns what the node's table has for a client and a quota type."""
    client = Client(principal, client_id)
    quotas = parse(ask(node, "client", *client), client).quotas
    return next(each for each in quotas if each.type is QuotaType(quota_type))
