"""``Cluster`` reads and changes client quotas, cluster-wide quotas and budgets, and finds brokers that ignore them.

1. :func:`cluster_at` connects to the cluster. Kafka's controller has the client quotas. Cluster-wide quotas and budgets
   of storage are records of ``__quotahost_quotas``, one for each entity, and this module reads them as brokers do.
2. :meth:`Cluster.compare` reads the sections that the files have from the cluster, and makes the plan.
3. :meth:`Cluster.change` validates the plan or makes its changes, and returns the refused changes.
4. :meth:`Cluster.not_made` waits until brokers have the changes that the controller has accepted.

librdkafka, which sends all other requests here, has no requests for client quotas (KIP-546). kafka-python has the
messages, but no method of its admin client sends them. So this module sends them with the classes below that client,
``kafka.net``. The names of these classes are public, but they aren't documented: pyproject.toml holds kafka-python to
one minor version.
"""

import logging
import ssl
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

from kafka.errors import KafkaError
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol import admin

from quotahost.base.errors import QuotahostError, Unusable
from quotahost.base.text import bounded
from quotahost.cli.property_files import AUTHORIZER, CALLBACK, FENCES, read_client_config
from quotahost.cli.quotas import plan as plans
from quotahost.cli.quotas.files import Declared
from quotahost.cli.quotas.plan import BUDGETS, CLIENTS, CLUSTER, Amount, Change, Entity, Plan, Quotas, Refusals
from quotahost.kafka.admin import BrokerConfig
from quotahost.kafka.client import NoAnswer, connect, no_right, who_answers
from quotahost.kafka.commands import CompactedTopic
from quotahost.kafka.rights import ask as ask_rights
from quotahost.model import DEFAULT
from quotahost.records import budgets
from quotahost.records import quotas as records
from quotahost.records.codec import Refused
from quotahost.records.topics import QUOTAS
from quotahost.settings.broker import NO_SUPPLIER
from quotahost.settings.declaration import PREFIX
from quotahost.settings.types import SUPPLIER

_CLIENT_ID: Final = "quotahost-quotas"
_WAIT_MS: Final = 10_000  # for an answer
_TAKEN_WITHIN: Final = 60.0  # seconds; with 100,000 quotas, a broker was 20 s behind the controller
_POLL: Final = 0.1  # seconds
_MOST_WARNINGS: Final = 5  # about records that brokers refuse
_REFUSED: Final = (
    "apply --prune-refused removes the record; apply replaces it if a file declares its entity (check first whether "
    "a later quotahost wrote it)"
)
_ASKED_AT_ONCE: Final = 16  # brokers
_MAX_ANSWER: Final = 512 * 1024 * 1024  # bytes; 100,000 entities are about 10 MB
_PLAIN: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
# Entities in a request. The controller accepts 10,000 records at once, and an entity has four records at most. A broker
# copies all its client quotas for each request: with 100,000 quotas and 500 entities a request it was 20 s behind.
_AT_ONCE: Final = 2000
_NO_RIGHT: Final = 31  # Errors.CLUSTER_AUTHORIZATION_FAILED
_ON_CLUSTER: Final = "--cluster"
_SUPPLIER: Final = f"{PREFIX}supplier"
#: For each section of a file, the supplier that enforces its quotas, and the words for these quotas.
_SUPPLIERS: Final = {CLIENTS: ("client-quotas", "Kafka's client"), CLUSTER: ("cluster-quota", "cluster-wide")}

# ---- the cluster -----------------------------------------------------------------------------------------------


@contextmanager
def cluster_at(bootstrap: str, client_config: Path | None, topic: str) -> Iterator["Cluster"]:
    """Connect to a cluster for the time of the context; ``topic`` is the topic of its cluster-wide quotas.

    Raises Unusable if anything can't be used; the error shows no value of ``client_config``.
    """
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # kafka-python would write to stderr, beside our message
    try:
        config = read_client_config(client_config) | {"bootstrap.servers": bootstrap}
        with ExitStack() as ends:
            try:
                # librdkafka connects first: kafka-python doesn't say why no broker answers or which file is unreadable.
                client = connect(config, _WAIT_MS / 1000)
                # kafka-python would use any broker, even one that hangs, so it gets a broker that answers. The answer
                # in connect() came from a bootstrap address and has no broker id (librdkafka's orig_broker_id is -1).
                answering, address = who_answers(client, _WAIT_MS / 1000) or (None, bootstrap)
                options = {"bootstrap_servers": address.split(","), "client_id": _CLIENT_ID, **_options(config)}
                network = NetworkSelector(**options)
                network.start()
                ends.callback(network.stop, _WAIT_MS)
                options |= {"request_timeout_ms": _WAIT_MS, "receive_message_max_bytes": _MAX_ANSWER}
                manager = KafkaConnectionManager(network, **options)
                ends.callback(manager.close)
                manager.bootstrap(_WAIT_MS)
            except (NoAnswer, KafkaError, OSError, ValueError, AssertionError) as error:
                why = error if isinstance(error, NoAnswer) else _reason(error)
                raise Unusable(f"{bootstrap} doesn't answer: {why}; check the address, and --client-config") from None
            brokers = {each.node_id: BrokerConfig(client, each.node_id, config) for each in manager.cluster.brokers()}
            yield Cluster(manager, brokers, config, topic, answering)
    except QuotahostError as error:
        raise Unusable(str(error)) from None


class Cluster:
    """A running cluster. Each method raises a QuotahostError if there is no answer, or a right is missing."""

    def __init__(
        self, manager: Any, brokers: Mapping[int, BrokerConfig], config: dict[str, str], topic: str,
        answering: int | None = None,
    ) -> None:  # fmt: skip
        """``manager`` has kafka-python's connections; ``config`` is librdkafka's, with secrets that are never shown."""
        self._manager, self._brokers, self._config, self._answering = manager, brokers, config, answering
        self._topic = CompactedTopic(config, topic, _CLIENT_ID)
        self.warnings: list[str] = []  # what an operator must know to judge the result

    def client_quotas(self) -> Quotas:
        """Return Kafka's client quotas. Raises Unusable if the cluster refuses (DescribeConfigs is needed)."""
        answer = self._ask(admin.DescribeClientQuotasRequest(components=[], strict=False))
        if answer.error_code == _NO_RIGHT:
            raise Unusable(*no_right("DescribeConfigs", _ON_CLUSTER, self._config))
        if answer.error_code:
            raise Unusable(f"the cluster refuses to tell its client quotas: {answer.error_message}; try again")
        entries = answer.entries or ()
        return {_entity(entry.entity): {rate.key: rate.value for rate in entry.values} for entry in entries}

    def recorded(self) -> Quotas:
        """Return the cluster-wide quotas and budgets of storage; a warning names each record that brokers refuse."""
        quotas, sizes = self._read = records.LatestQuotas(), budgets.LatestBudgets()
        self._refused: dict[Entity, Refused] = {}
        for key, value in self._topic.read():
            entity = Entity(in_cluster=True, refused=key or b"")
            self._refused.pop(entity, None)
            try:
                quotas.take(key, value)
                sizes.take(key, value)
            except Refused as problem:
                if value is not None:
                    self._refused[entity] = problem
        of = f"of {self._topic.name}"
        told = [f"brokers refuse the {entity} {of}: {why}; {_REFUSED}" for entity, why in self._refused.items()]
        self.warnings += bounded(told, _MOST_WARNINGS, f"records {of}")
        found: dict[Entity, dict[str, Amount]] = {}
        for name, quota in quotas.by_name.items():
            rates = {"produce": quota.produce, "fetch": quota.fetch}
            entity = Entity(DEFAULT if name == records.DEFAULT else name.user, name.client_id, in_cluster=True)
            found[entity] = {kind: rate for kind, rate in rates.items() if rate is not None}
        for budget in sizes.by_name.values():
            of, topics = "replicas" if budget.replicas else "leaders", ", ".join(sorted(set(budget.topics)))
            found[Entity(budget=budget.name)] = {"topics": topics, "bytes": budget.bytes, "of": of}
        return found

    def compare(self, declared: Declared, prune: bool, prune_refused: bool = False) -> Plan:
        """Return the plan for the files' sections; ``prune_refused`` also removes records that brokers refuse."""
        present = dict(self.client_quotas()) if CLIENTS in declared.sections else {}
        wanted: dict[Entity, Mapping[str, Amount]] = {**declared.quotas}
        if declared.sections - {CLIENTS} or prune_refused:
            recorded = self.recorded()
            # After a refused record, brokers keep the entity's earlier value, but a broker that starts later has none.
            # So the declared value is written again, and the plan shows the refused record that this value replaces.
            own = {_key(of) for of in wanted if self._refused and of.section != CLIENTS}
            gone = [of for of in self._refused if prune_refused or of.refused in own]
            keys = {of.refused for of in gone}
            managed = [of for of in recorded if of.section in declared.sections and not (keys and _key(of) in keys)]
            present |= {of: recorded[of] for of in managed}
            present |= {of: {"refused": self._refused[of].reason} for of in gone}
            wanted |= {of: {} for of in gone}
        numbers = sorted(self._brokers)
        with ThreadPoolExecutor(_ASKED_AT_ONCE) as threads:  # otherwise waits for hanging brokers add up
            which = declared.sections, self._topic.name
            told = threads.map(lambda number: [*not_enforced(self._brokers[number], *which)], numbers)
        self.warnings += (f"broker {number}: {words}" for number, of in zip(numbers, told, strict=True) for words in of)
        return plans.compare(wanted, present, prune=prune or declared.prune)

    def change(self, plan: Plan, *, validate_only: bool = False) -> Refusals:
        """Make the changes, or only validate them; return the refusals. An entity's changes are all made, or none."""
        refusals = self._alter(_of_kafka(plan), validate_only)
        entities: dict[bytes, Entity] = {}
        values: dict[bytes, bytes | None] = {}
        recorded = [entity for entity in plan.wanted if entity.section != CLIENTS]
        # Removals come first, because brokers keep a limited number of records and refuse records beyond it.
        for entity in sorted(recorded, key=lambda entity: bool(plan.wanted[entity])):
            try:
                key, value = _record(entity, plan.wanted[entity])
                for latest in self._read if entity.refused is None else ():  # brokers do the same
                    latest.take(key, value)
            except Refused as problem:
                refusals[entity] = f"brokers would refuse it: {problem}"
            else:
                values.pop(key, None)  # the value that replaces a refused record must follow all removals
                entities[key], values[key] = entity, value
        if validate_only:
            lacking = self._lacking() if values else ""
            return refusals | (dict.fromkeys(entities.values(), lacking) if lacking else {})
        return refusals | {entities[key]: why for key, why in self._topic.write(values).items()}

    def _alter(self, changes: Iterable[Change], validate_only: bool) -> Refusals:
        """Change client quotas, or only validate the changes; return the changes that Kafka refuses."""
        lacking = "; ".join(no_right("AlterConfigs", _ON_CLUSTER, self._config))
        refusals: Refusals = {}
        # groupby() needs the changes of an entity next to each other, and a plan has them so.
        entries = [_entry(entity, of_entity) for entity, of_entity in groupby(changes, key=attrgetter("entity"))]
        for first in range(0, len(entries), _AT_ONCE):
            some = entries[first : first + _AT_ONCE]
            answer = self._ask(admin.AlterClientQuotasRequest(entries=some, validate_only=validate_only))
            for entry in (entry for entry in answer.entries if entry.error_code):
                told = entry.error_message or f"error {entry.error_code}"
                refusals[_entity(entry.entity)] = lacking if entry.error_code == _NO_RIGHT else told
        return refusals

    def _ask(self, request: Any) -> Any:
        """Return a broker's answer within 10 s. Raises Unusable if there is no answer."""
        try:
            return self._manager.run(self._manager.send, request, self._answering)
        except KafkaError as error:
            raise Unusable(f"the cluster doesn't answer: {_reason(error)}; try again") from None

    def _lacking(self) -> str:
        """Return the right that this client lacks to write to the topic of the cluster-wide quotas; "" if none."""
        topic = self._topic.name
        rights = ask_rights(connect(self._config, _WAIT_MS / 1000), [topic])
        if rights.missing.get(topic) or rights.own.get(topic, frozenset()) & {"Write", "All"}:
            return ""
        return "; ".join(no_right("Create" if topic in rights.missing else "Write", f"--topic {topic}", self._config))

    def not_made(self, plan: Plan, refusals: Refusals) -> list[Change]:
        """Return the changes that were not made, because they were refused or a broker lacks them after a minute.

        A cluster-wide quota counts as made when its record is written, because each broker follows the topic.
        """
        until = time.monotonic() + _TAKEN_WITHIN
        left = {change for change in _of_kafka(plan) if change.entity not in refusals}
        while left and time.monotonic() < until:
            time.sleep(_POLL)
            present = self.client_quotas()
            left = {change for change in left if present.get(change.entity, {}).get(change.key) != change.after}
        return [change for change in plan.changes if change.entity in refusals or change in left]


def _of_kafka(plan: Plan) -> list[Change]:
    return [change for change in plan.changes if change.entity.section == CLIENTS]


def _key(entity: Entity) -> bytes | None:
    """Return the key of an entity's record; None if brokers would refuse the record."""
    with suppress(Refused):
        return _record(entity, {})[0]
    return None


def _record(entity: Entity, amounts: Mapping[str, Amount]) -> tuple[bytes, bytes | None]:
    """Return key and value of an entity's record; no amounts make the value None. Raises Refused as brokers do."""
    if entity.refused is not None:
        return entity.refused, None
    if entity.budget is not None:
        return budgets.key_of(entity.budget), budgets.encode(entity.as_budget(amounts)) if amounts else None
    user = None if entity.user is DEFAULT else entity.user
    client_id = None if entity.client_id is None else str(entity.client_id)
    key = records.key_of(records.Entity(user, client_id))
    return key, records.encode(records.ClusterQuota(**amounts)) if amounts else None


# ---- the connection --------------------------------------------------------------------------------------------


def _reason(error: Exception) -> str:
    """Return the kind of an error, because its text could repeat configured values."""
    return type(error).__name__.removesuffix("Error")


def _options(config: Mapping[str, str]) -> dict[str, Any]:
    """Return kafka-python's options from librdkafka's; options that don't concern the connection are left out."""
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
            with NamedTemporaryFile() as file:  # only this user can read it; OpenSSL needs a file
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


def _entry(entity: Entity, changes: Iterable[Change]) -> Any:
    form = admin.AlterClientQuotasRequest.EntryData
    names = {kind: None if name is DEFAULT else name for kind, name in entity.parts().items()}
    parts = [form.EntityData(entity_type=kind, entity_name=name) for kind, name in names.items()]
    made = [form.OpData(key=change.key, value=change.after or 0.0, remove=change.after is None) for change in changes]
    return form(entity=parts, ops=made)


def _entity(parts: Iterable[Any]) -> Entity:
    """Return the entity of a part of Kafka's answer, where a missing name means the default."""
    names = {part.entity_type: DEFAULT if part.entity_name is None else part.entity_name for part in parts}
    return Entity(names.get("user"), names.get("client-id"), names.get("ip"))


# ---- which brokers enforce the quotas --------------------------------------------------------------------------


def not_enforced(broker: BrokerConfig, sections: Collection[str], topic: str) -> Iterator[str]:
    """Yield the visible reasons for which a broker may not enforce these sections, whose records are in ``topic``."""
    try:
        configs = broker.properties()
    except NoAnswer as problem:
        yield f"can't check whether it enforces these quotas: {problem}"
        return
    callback = configs.get(CALLBACK)
    if callback and not callback.startswith("org.quotahost."):
        yield f"callback {callback} decides about quotas and may ignore these"
        return
    if topic == QUOTAS.name and {*sections} - {CLIENTS} and f"{PREFIX}topics.prefix" in configs:
        yield f"topics.prefix is set, so it may read another topic than {topic}; give its topic by --quotas-topic"
    lacking = [] if f"{PREFIX}budgets" in configs else [f"{PREFIX}budgets=on"]
    lacking += [] if configs.get(AUTHORIZER) in FENCES else [f"{AUTHORIZER}={FENCES[0]}"]
    if BUDGETS in sections and lacking:
        yield f"budgets of storage are not enforced; set {' and '.join(lacking)}"
    for section, (supplier, kind) in _SUPPLIERS.items():
        # A broker without quotahost, or with its default supplier, enforces Kafka's own client quotas.
        by_default = section == CLIENTS and (not callback or _SUPPLIER not in configs)
        if section not in sections or by_default:
            continue
        enforced = _has_supplier(broker, supplier) if callback else False
        if enforced is None:
            yield f"can't check whether {_SUPPLIER} has {supplier}, without which {kind} quotas are not enforced"
        elif not enforced:
            yield f"{kind} quotas are not enforced; add {supplier} to {_SUPPLIER}"


def _has_supplier(broker: BrokerConfig, supplier: str) -> bool | None:
    """Return whether the broker has a supplier; None if this client may not ask.

    Kafka validates a change together with all properties in force, and returns the reason of a refusal. So a change
    that puts a supplier in shadow is valid if the broker has the supplier, else refused. The request changes nothing.
    """
    try:
        broker.change(put={f"{PREFIX}shadow": f"{SUPPLIER}{supplier}"}, validate_only=True)
    except NoAnswer as problem:
        return False if NO_SUPPLIER.format(supplier) in str(problem) else None
    return True
