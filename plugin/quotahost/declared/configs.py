"""Asks brokers about their properties, and changes those of all brokers, by the Admin API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kafka.protocol.admin import DescribeConfigsRequest, IncrementalAlterConfigsRequest

from quotahost.declared.connection import Connection

_BROKER: Final = 4  # ConfigResource.Type.BROKER; the empty name stands for the default of all brokers
_SET, _DELETE = 0, 1  # AlterConfigOp.OpType


def describe(connection: Connection, broker: int) -> Mapping[str, str | None]:
    """The properties of a broker; None for values that Kafka hides: all that it doesn't know, and passwords.

    Raises:
        DeclarationError: there is no answer.
    """
    form = DescribeConfigsRequest.DescribeConfigsResource
    resource = form(resource_type=_BROKER, resource_name=str(broker), configuration_keys=None)
    (answer,) = connection.ask(DescribeConfigsRequest(resources=[resource]), broker).results
    return {each.name: each.value for each in answer.configs or ()}


def change(
    connection: Connection, values: Mapping[str, str | None], broker: int | None = None, *, validate_only: bool = False
) -> Any:
    """Change the default of all brokers, or have one broker validate the change; None takes a property away.

    Returns:
        The answer, with ``error_code`` and ``error_message``.

    Raises:
        DeclarationError: there is none.
    """
    form = IncrementalAlterConfigsRequest.AlterConfigsResource
    configs = [
        form.AlterableConfig(name=name, config_operation=_DELETE if value is None else _SET, value=value)
        for name, value in values.items()
    ]
    resource = form(resource_type=_BROKER, resource_name="", configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    answers: Sequence[Any] = connection.ask(request, broker).responses
    return answers[0]
