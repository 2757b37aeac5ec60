"""Kafka's own client quotas of a running cluster, and whether its brokers enforce what is set.

librdkafka, by which the rest of quotahost speaks to Kafka, has no requests for client quotas (KIP-546). kafka-python
has the messages, and no method of its admin client that sends them; so :class:`Connection` sends them by the classes on
which that client is built, ``kafka.net``. They are public by their names and documented nowhere: pyproject.toml holds
kafka-python to one minor version.
"""

import logging
import ssl
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

from kafka.errors import KafkaError
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol import admin

from quotahost.cli.quotas.plan import BUDGETS, CLIENTS, CLUSTER, Change, Entity, Quotas, Refusals
from quotahost.errors import Unusable
from quotahost.kafka.client import NoAnswer, reach
from quotahost.model import DEFAULT
from quotahost.settings.broker import NO_SUPPLIER
from quotahost.settings.declaration import PREFIX
from quotahost.settings.types import SUPPLIER

CLIENT_ID: Final = "quotahost-quotas"
_WAIT_MS: Final = 10_000
_MAX_ANSWER: Final = 512 * 1024 * 1024  # bytes; 100,000 entities are about 10 MB
_PLAIN: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_AT_ONCE: Final = 500  # entities in a request; the controller takes 10,000 records at once
_NO_RIGHT: Final = 31  # Errors.CLUSTER_AUTHORIZATION_FAILED
_GIVE: Final = "give the principal"
_BROKER: Final = 4  # ConfigResource.Type.BROKER
_SET: Final = 0  # AlterConfigOp.OpType
_SUPPLIER: Final = f"{PREFIX}supplier"
#: The suppliers that enforce quotas, by the section of a file, and the words for these quotas.
_SUPPLIERS: Final = {CLIENTS: ("client-quotas", "Kafka's client"), CLUSTER: ("cluster-quota", "cluster-wide")}

# ---- the connection --------------------------------------------------------------------------------------------


class Connection:
    """A connection to a cluster; it waits 10 s at most for each answer."""

    def __init__(self, manager: Any) -> None:
        """Take kafka-python's KafkaConnectionManager, which has seen the cluster."""
        self._manager = manager

    def ask(self, request: Any, node: int | None = None) -> Any:
        """The answer of a broker, of any if none is named. Raises Unusable if there is none."""
        try:
            return self._manager.run(self._manager.send, request, node)
        except KafkaError as error:
            raise Unusable(f"the cluster doesn't answer: {_reason(error)}; try again") from None

    def brokers(self) -> list[int]:
        """The ids of the brokers in service."""
        return sorted(broker.node_id for broker in self._manager.cluster.brokers())


@contextmanager
def connected(bootstrap: str, config: Mapping[str, str]) -> Iterator[Connection]:
    """A connection for as long as the context lasts, by librdkafka's names, secrets among them.

    Raises Unusable if nobody answers, or ``config`` asks for what kafka-python can't do. It shows no value.
    """
    logging.getLogger("kafka").propagate = False  # it would write to stderr, beside our own message
    logging.getLogger("kafka").addHandler(logging.NullHandler())
    options = {"bootstrap_servers": bootstrap.split(","), "client_id": CLIENT_ID, **_options(config)}
    network = NetworkSelector(**options)
    network.start()
    try:
        try:
            manager = KafkaConnectionManager(
                network, **options, request_timeout_ms=_WAIT_MS, receive_message_max_bytes=_MAX_ANSWER
            )
            manager.bootstrap(_WAIT_MS)
        except (KafkaError, OSError, ValueError, AssertionError) as error:
            try:  # kafka-python tells nothing of why nobody answers
                reach({**config, "bootstrap.servers": bootstrap}, _WAIT_MS / 1000)
                why = _reason(error)
            except NoAnswer as told:
                why = str(told)
            who, remedy = "a client without credentials", "another listener, or --client-config FILE"
            if config:
                who, remedy = "with these credentials", "look at address, protocol and credentials"
            raise Unusable(f"{bootstrap} doesn't answer {who}: {why}; {remedy}") from None
        yield Connection(manager)
        manager.close()
    finally:
        network.stop(_WAIT_MS)


def _reason(error: Exception) -> str:
    """The kind of an error: its text could repeat what was configured."""
    kind = type(error).__name__.removesuffix("Error")
    return f"nothing came within {_WAIT_MS // 1000} s" if kind == "KafkaTimeout" else kind


def _options(config: Mapping[str, str]) -> dict[str, Any]:
    """kafka-python's options of librdkafka's; what is no part of connecting is left out."""
    protocol = config.get("security.protocol", "PLAINTEXT").upper()
    options: dict[str, Any] = {"security_protocol": protocol}
    if protocol.startswith("SASL_"):
        mechanism = config.get("sasl.mechanism", config.get("sasl.mechanisms", "GSSAPI")).upper()
        if mechanism not in _PLAIN:
            raise Unusable(
                f"sasl.mechanism: {mechanism} can't be used here; connect by TLS or one of {', '.join(_PLAIN)}"
            )
        options["sasl_mechanism"] = mechanism
        options["sasl_plain_username"] = config.get("sasl.username", "")
        options["sasl_plain_password"] = config.get("sasl.password", "")
    if protocol.endswith("SSL"):
        options["ssl_context"] = context = _context(config)
        options["ssl_check_hostname"] = context.check_hostname
    return options


def _context(config: Mapping[str, str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=config.get("ssl.ca.location"), cadata=config.get("ssl.ca.pem"))
        if certificate := config.get("ssl.certificate.location"):
            context.load_cert_chain(certificate, config.get("ssl.key.location"), config.get("ssl.key.password"))
        elif certificate := config.get("ssl.certificate.pem"):
            with NamedTemporaryFile() as file:  # for this user alone; OpenSSL takes no text
                Path(file.name).write_text(f"{certificate}\n{config.get('ssl.key.pem', '')}\n", encoding="utf-8")
                context.load_cert_chain(file.name, password=config.get("ssl.key.password"))
    except (OSError, ValueError) as error:
        raise Unusable(f"ssl.*: a certificate or key can't be used: {_reason(error)}; give PEM") from None
    if config.get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    if config.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


# ---- client quotas ---------------------------------------------------------------------------------------------


def describe(connection: Connection) -> Quotas:
    """All client quotas of the cluster. Raises Unusable if it doesn't tell (DescribeConfigs on the cluster)."""
    answer = connection.ask(admin.DescribeClientQuotasRequest(components=[], strict=False))
    if answer.error_code == _NO_RIGHT:
        raise Unusable(f"this client may not read client quotas; {_GIVE} DescribeConfigs on the cluster")
    if answer.error_code:
        raise Unusable(f"the cluster refuses to tell its client quotas: {answer.error_message}; try again")
    return {_entity(entry.entity): {rate.key: rate.value for rate in entry.values} for entry in answer.entries or ()}


def alter(connection: Connection, changes: Iterable[Change], *, validate_only: bool = False) -> Refusals:
    """Make changes, or have them validated only, and return what Kafka refuses; all of an entity's are made, or none.

    Raises Unusable without an answer: what was asked before may have been done.
    """
    no_right = f"this client may not change client quotas; {_GIVE} AlterConfigs on the cluster"
    refusals: Refusals = {}
    # A plan has the changes of an entity one after the other.
    entries = [_entry(entity, of_entity) for entity, of_entity in groupby(changes, key=attrgetter("entity"))]
    for first in range(0, len(entries), _AT_ONCE):
        some = entries[first : first + _AT_ONCE]
        answer = connection.ask(admin.AlterClientQuotasRequest(entries=some, validate_only=validate_only))
        for entry in (entry for entry in answer.entries if entry.error_code):
            told = entry.error_message or f"error {entry.error_code}"
            refusals[_entity(entry.entity)] = no_right if entry.error_code == _NO_RIGHT else told
    return refusals


def _entry(entity: Entity, changes: Iterable[Change]) -> Any:
    form = admin.AlterClientQuotasRequest.EntryData
    names = {kind: None if name is DEFAULT else name for kind, name in entity.parts().items()}
    parts = [form.EntityData(entity_type=kind, entity_name=name) for kind, name in names.items()]
    made = [form.OpData(key=change.key, value=change.after or 0.0, remove=change.after is None) for change in changes]
    return form(entity=parts, ops=made)


def _entity(parts: Iterable[Any]) -> Entity:
    """The entity of Kafka's answer, in which no name stands for the default."""
    names = {part.entity_type: DEFAULT if part.entity_name is None else part.entity_name for part in parts}
    return Entity(names.get("user"), names.get("client-id"), names.get("ip"))


# ---- who enforces them -----------------------------------------------------------------------------------------


def not_enforced(connection: Connection, sections: Collection[str]) -> Iterator[str]:
    """Each broker on which the quotas of these sections may not hold, as far as it can be seen."""
    for broker in connection.brokers():
        yield from (f"broker {broker}: {words}" for words in _not_enforced_by(connection, broker, sections))


def _not_enforced_by(connection: Connection, broker: int, sections: Collection[str]) -> Iterator[str]:
    form = admin.DescribeConfigsRequest.DescribeConfigsResource
    resource = form(resource_type=_BROKER, resource_name=str(broker), configuration_keys=None)
    (answer,) = connection.ask(admin.DescribeConfigsRequest(resources=[resource]), broker).results
    if answer.error_code:
        yield f"whether it enforces what is set here can't be seen; {_GIVE} DescribeConfigs on the cluster"
        return
    # The value is None where Kafka hides it: of all that it doesn't know, and of passwords.
    configs = {config.name: config.value for config in answer.configs or ()}
    callback = configs.get(f"{PREFIX}class")
    if callback and not callback.startswith("org.quotahost."):
        yield f"{callback} decides about quotas; what is set here holds as far as it follows it"
        return
    if BUDGETS in sections and f"{PREFIX}budgets" not in configs:
        yield f"budgets of storage are not enforced; set {PREFIX}budgets=on"
    for section, (supplier, kind) in _SUPPLIERS.items():
        # Without quotahost, and with its default supplier, Kafka's own client quotas are enforced.
        by_default = section == CLIENTS and (not callback or _SUPPLIER not in configs)
        if section not in sections or by_default:
            continue
        enforced = _has_supplier(connection, broker, supplier) if callback else False
        if enforced is None:
            yield f"{kind} quotas are enforced only if {_SUPPLIER}, which Kafka hides, has {supplier}"
        elif not enforced:
            yield f"{kind} quotas are not enforced; add {supplier} to {_SUPPLIER}"


def _has_supplier(connection: Connection, broker: int, supplier: str) -> bool | None:
    """Whether the broker has a supplier; None if this client may not ask.

    Kafka has a change validated together with all properties in force, and hands on the reason of a refusal. So
    putting a supplier in shadow passes where the broker has it, and is refused where not. Nothing is changed.
    """
    form = admin.IncrementalAlterConfigsRequest.AlterConfigsResource
    asks = form.AlterableConfig(name=f"{PREFIX}shadow", config_operation=_SET, value=f"{SUPPLIER}{supplier}")
    resource = form(resource_type=_BROKER, resource_name=str(broker), configs=[asks])
    request = admin.IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)
    (answer,) = connection.ask(request, broker).responses
    if not answer.error_code:
        return True
    return False if NO_SUPPLIER.format(supplier) in (answer.error_message or "") else None
