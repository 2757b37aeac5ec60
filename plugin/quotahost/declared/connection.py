"""How kafka-python connects by the client files that other commands of quotahost take, and sends a request.

librdkafka, which the rest of quotahost uses, has no requests for client quotas; kafka-python has (KIP-546).
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from kafka.errors import KafkaError

from kafka.admin import KafkaAdminClient
from quotahost.declared.problems import DeclarationError

_WAIT_MS: Final = 10_000
_PLAIN: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_SASL: Final = {"sasl.username": "sasl_plain_username", "sasl.password": "sasl_plain_password"}


class Connection:
    """A connection to a cluster; it waits 10 s at most for each answer."""

    def __init__(self, admin: Any) -> None:
        """Take kafka-python's KafkaAdminClient."""
        # kafka-python has these messages, but no method of its client for them; its mixins send theirs in this way.
        self._manager = admin._manager

    def ask(self, request: Any, node: int | None = None) -> Any:
        """The answer of a broker, of any if none is named.

        Raises:
            DeclarationError: there is none.
        """
        try:
            return self._manager.run(self._send, request, node)
        except KafkaError as error:
            raise DeclarationError(f"the cluster doesn't answer: {_reason(error)}; try again") from None

    async def _send(self, request: Any, node: int | None) -> Any:
        return await (self._manager.send(request) if node is None else self._manager.send(request, node_id=node))

    def brokers(self) -> list[int]:
        """The ids of the brokers in service."""
        return sorted(broker.node_id for broker in self._manager.cluster.brokers())


@contextmanager
def connected(bootstrap: str, config: Mapping[str, str]) -> Iterator[Connection]:
    """A connection for as long as the context lasts.

    Args:
        bootstrap: HOST:PORT, several separated by commas.
        config: how to connect, in librdkafka's names, secrets among it.

    Raises:
        DeclarationError: nobody answers, or the file asks for what kafka-python can't do. It shows no value.
    """
    logging.getLogger("kafka").propagate = False  # it would write to stderr, beside our own message
    logging.getLogger("kafka").addHandler(logging.NullHandler())
    options = {"bootstrap_servers": bootstrap.split(","), "client_id": "quotahost-quotas", **options_of(config)}
    try:
        admin = KafkaAdminClient(bootstrap_timeout_ms=_WAIT_MS, request_timeout_ms=_WAIT_MS, **options)
    except (KafkaError, OSError, ValueError, AssertionError) as error:
        who = "with these credentials" if config else "a client without credentials"
        remedy = "look at address, protocol and credentials" if config else "another listener, or --client-config FILE"
        raise DeclarationError(f"{bootstrap} doesn't answer {who}: {_reason(error)}; {remedy}") from None
    try:
        yield Connection(admin)
    finally:
        admin.close()


def _reason(error: Exception) -> str:
    """The kind of an error: its text could repeat what was configured."""
    kind = type(error).__name__.removesuffix("Error")
    return f"nothing came within {_WAIT_MS // 1000} s" if kind == "KafkaTimeout" else kind


def options_of(config: Mapping[str, str]) -> dict[str, Any]:
    """kafka-python's options of librdkafka's; what is no part of connecting is left out.

    Raises:
        DeclarationError: kafka-python can't connect in this way; it names the option.
    """
    protocol = config.get("security.protocol", "PLAINTEXT").upper()
    made: dict[str, Any] = {"security_protocol": protocol}
    if protocol.startswith("SASL_"):
        mechanism = config.get("sasl.mechanism", config.get("sasl.mechanisms", "GSSAPI")).upper()
        if mechanism not in _PLAIN:
            raise DeclarationError(
                f"sasl.mechanism: {mechanism} can't be used here; connect by TLS or one of {', '.join(_PLAIN)}"
            )
        made |= {"sasl_mechanism": mechanism, **{ours: config.get(name, "") for name, ours in _SASL.items()}}
    if protocol.endswith("SSL"):
        made["ssl_context"] = _context(config)
        made["ssl_check_hostname"] = made["ssl_context"].check_hostname
    return made


def _context(config: Mapping[str, str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=config.get("ssl.ca.location"), cadata=config.get("ssl.ca.pem"))
        if certificate := config.get("ssl.certificate.location"):
            context.load_cert_chain(certificate, config.get("ssl.key.location"), config.get("ssl.key.password"))
    except (OSError, ValueError) as error:
        raise DeclarationError(f"ssl.*.location: a file can't be used: {_reason(error)}; name PEM files") from None
    if config.get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    if config.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
