"""Connects to a cluster once and, if it doesn't answer, says in a sentence why not; for ``quotahost doctor --against``.

librdkafka itself says only that it timed out; why each try failed it tells by its error callback.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from quotahost.errors import QuotahostError

_OURS: Final = {"log_level": 0, "socket.connection.setup.timeout.ms": 5000}
_MOMENT: Final = 3.0  # seconds, in which a broker that is there answers even when it is busy
#: The first reason that a try gave wins; its words say what to mend.
_WORDS: Final = {
    KafkaError._AUTHENTICATION: "it refuses the user, the password or the mechanism",
    KafkaError._SSL: "TLS fails: either its listener has no TLS, or a certificate is not trusted",
    KafkaError._RESOLVE: "its name can't be resolved",
}
#: librdkafka has no code of its own for these; they stand in its texts.
_TEXTS: Final = {"SSL_HANDSHAKE": _WORDS[KafkaError._SSL], "Connection refused": "nobody listens there"}


class NoAnswer(QuotahostError):
    """The cluster doesn't answer this client, or refuses it."""


def reach(config: Mapping[str, str], wait: float) -> AdminClient:
    """A client that has had its first answer.

    Args:
        config: librdkafka's, with ``bootstrap.servers``; it may contain secrets, of which nothing is shown.
        wait: seconds, at most.

    Raises:
        NoAnswer: the configuration is wrong, or no broker answers it.
    """
    errors: list[KafkaError] = []
    try:
        options: dict[str, Any] = {**_OURS, **config, "error_cb": errors.append}
        admin = AdminClient(options)
    except (KafkaException, TypeError, ValueError) as failure:
        reason = failure.args[0] if failure.args else failure
        raise NoAnswer(str(reason.str() if isinstance(reason, KafkaError) else reason)) from None
    try:
        _first_answer(admin, errors, wait)
    except KafkaException as failure:
        raise NoAnswer(why(errors) or str(failure.args[0].str())) from None
    return admin


def _first_answer(admin: AdminClient, errors: Sequence[KafkaError], wait: float) -> None:
    """Wait for it, but no longer than a moment once it is known why none comes."""
    for seconds in (min(_MOMENT, wait), wait):
        try:
            admin.list_topics(timeout=seconds)
        except KafkaException:
            admin.poll(0)
            if seconds == wait or why(errors):
                raise
        else:
            return


def why(errors: Sequence[KafkaError]) -> str:
    """What kept a client from connecting, in words; "" if none of these errors is known."""
    for error in errors:
        if error.code() in _WORDS:
            return _WORDS[error.code()]
    texts = " ".join(str(error.str()) for error in errors)
    for text, words in _TEXTS.items():
        if text in texts:
            return words
    # Of a connection that was made and then closed without a word librdkafka tells nothing but this.
    if any(error.code() == KafkaError._ALL_BROKERS_DOWN for error in errors):
        return "it closes the connection: its listener asks for another security.protocol or sasl.mechanism"
    return ""
