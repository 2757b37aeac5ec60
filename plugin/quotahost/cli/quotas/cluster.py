"""Reads and changes a cluster's client quotas, cluster-wide ones and budgets; and which brokers don't enforce them.

1. :func:`cluster_at` connects. Kafka's controller has the client quotas; the cluster-wide ones are records of
   ``__quotahost_quotas``, one for each entity, which are read here as brokers read them.
   Budgets of storage are records of the same topic.
2. :meth:`Cluster.compare` asks for the sections that the files have, and makes the plan.
3. :meth:`Cluster.change` has the plan validated, or makes it; it returns what was refused.
4. :meth:`Cluster.not_made` waits until brokers have what the controller has taken.

librdkafka, by which all else is asked here, too, has no requests for client quotas (KIP-546). kafka-python has the
messages, and no method of its admin client that sends them; so they are sent here by the classes on which that client
is built, ``kafka.net``. They are public by their names and documented nowhere: pyproject.toml holds kafka-python to one
minor version.
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
from quotahost.cli.property_files import AUTHORIZER, FENCES, read_client_config
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
from quotahost.settings.broker import NO_SUPPLIER
from quotahost.settings.declaration import PREFIX
from quotahost.settings.types import SUPPLIER

_CLIENT_ID: Final = "quotahost-quotas"
_WAIT_MS: Final = 10_000  # for an answer
_TAKEN_WITHIN: Final = 60.0  # seconds: where there are 100,000 quotas, a broker was 20 s behind the controller
_POLL: Final = 0.1  # seconds
_MOST_WARNINGS: Final = 5  # about records that are refused
_REFUSED: Final = (
    "apply --prune-refused removes it, and apply writes over it what a file declares (look first whether a later "
    "quotahost wrote it)"
)
_ASKED_AT_ONCE: Final = 16  # brokers
_MAX_ANSWER: Final = 512 * 1024 * 1024  # bytes; 100,000 entities are about 10 MB
_PLAIN: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
# Entities in a request. The controller takes 10,000 records at once, four for an entity at most. With each request a
# broker copies all its client quotas: where there are 100,000 it was 20 s behind with 500 entities in each.
_AT_ONCE: Final = 2000
_NO_RIGHT: Final = 31  # Errors.CLUSTER_AUTHORIZATION_FAILED
_ON_CLUSTER: Final = "--cluster"
_SUPPLIER: Final = f"{PREFIX}supplier"
#: The suppliers that enforce quotas, by the section of a file, and the words for these quotas.
_SUPPLIERS: Final = {CLIENTS: ("client-quotas", "Kafka's client"), CLUSTER: ("cluster-quota", "cluster-wide")}

# ---- the cluster -----------------------------------------------------------------------------------------------


@contextmanager
def cluster_at(bootstrap: str, client_config: Path | None, topic: str) -> Iterator["Cluster"]:
    """The cluster, for as long as the context lasts; ``topic`` is that of its cluster-wide quotas.

    Raises Unusable for whatever can't be used; it shows no value of ``client_config``.
    """
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # it would write to stderr, beside our own message
    try:
        config = read_client_config(client_config) | {"bootstrap.servers": bootstrap}
        with ExitStack() as ends:
            try:
                # First, as kafka-python tells nothing of why nobody answers, nor which file it can't read.
                client = connect(config, _WAIT_MS / 1000)
                # kafka-python would take any broker, also one that hangs. Asked anew: the first answer, to a bootstrap
                # address, tells of no broker (librdkafka's orig_broker_id is -1).
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
                raise Unusable(f"{bootstrap} doesn't answer: {why}; see the address, and --client-config") from None
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
        """By kafka-python's connections, and librdkafka's ``config``, with secrets of which nothing is shown."""
        self._manager, self._brokers, self._config, self._answering = manager, brokers, config, answering
        self._topic = CompactedTopic(config, topic, _CLIENT_ID)
        self.warnings: list[str] = []  # what a person should know before trusting what is shown

    def client_quotas(self) -> Quotas:
        """Kafka's client quotas. Raises Unusable if the cluster doesn't tell (DescribeConfigs on the cluster)."""
        answer = self._ask(admin.DescribeClientQuotasRequest(components=[], strict=False))
        if answer.error_code == _NO_RIGHT:
            raise Unusable(*no_right("DescribeConfigs", _ON_CLUSTER, self._config))
        if answer.error_code:
            raise Unusable(f"the cluster refuses to tell its client quotas: {answer.error_message}; try again")
        entries = answer.entries or ()
        return {_entity(entry.entity): {rate.key: rate.value for rate in entry.values} for entry in entries}

    def recorded(self) -> Quotas:
        """The cluster-wide quotas and budgets of storage; a warning names each record that no broker takes."""
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
        """What differs in the sections that the files have; with ``prune_refused``, what brokers refuse goes, too."""
        present = dict(self.client_quotas()) if CLIENTS in declared.sections else {}
        wanted: dict[Entity, Mapping[str, Amount]] = {**declared.quotas}
        if declared.sections - {CLIENTS} or prune_refused:
            recorded = self.recorded()
            # Brokers have only from before what such a record is about, and none that starts later has it: so what is
            # declared is written anew, and the plan shows what it is written over.
            own = {_key(of) for of in wanted if self._refused and of.section != CLIENTS}
            gone = [of for of in self._refused if prune_refused or of.refused in own]
            keys = {of.refused for of in gone}
            managed = [of for of in recorded if of.section in declared.sections and not (keys and _key(of) in keys)]
            present |= {of: recorded[of] for of in managed}
            present |= {of: {"refused": self._refused[of].reason} for of in gone}
            wanted |= {of: {} for of in gone}
        numbers = sorted(self._brokers)
        with ThreadPoolExecutor(_ASKED_AT_ONCE) as threads:  # else the waits for those that hang add up
            told = threads.map(lambda number: [*not_enforced(self._brokers[number], declared.sections)], numbers)
        self.warnings += (f"broker {number}: {words}" for number, of in zip(numbers, told, strict=True) for words in of)
        return plans.compare(wanted, present, prune=prune or declared.prune)

    def change(self, plan: Plan, *, validate_only: bool = False) -> Refusals:
        """Make the changes, or ask who would refuse them; all of an entity's are made, or none."""
        refusals = self._alter(_of_kafka(plan), validate_only)
        entities: dict[bytes, Entity] = {}
        values: dict[bytes, bytes | None] = {}
        recorded = [entity for entity in plan.wanted if entity.section != CLIENTS]
        # What is removed comes first: brokers keep so many at most, and refuse what would be one more.
        for entity in sorted(recorded, key=lambda entity: bool(plan.wanted[entity])):
            try:
                key, value = _record(entity, plan.wanted[entity])
                for latest in self._read if entity.refused is None else ():  # as brokers will
                    latest.take(key, value)
            except Refused as problem:
                refusals[entity] = f"brokers would refuse it: {problem}"
            else:
                values.pop(key, None)  # of a refused record: what takes its place comes after all that is removed
                entities[key], values[key] = entity, value
        if validate_only:
            lacking = self._lacking() if values else ""
            return refusals | (dict.fromkeys(entities.values(), lacking) if lacking else {})
        return refusals | {entities[key]: why for key, why in self._topic.write(values).items()}

    def _alter(self, changes: Iterable[Change], validate_only: bool) -> Refusals:
        """Change client quotas, or have that validated only, and return what Kafka refuses."""
        lacking = "; ".join(no_right("AlterConfigs", _ON_CLUSTER, self._config))
        refusals: Refusals = {}
        # A plan has the changes of an entity one after the other.
        entries = [_entry(entity, of_entity) for entity, of_entity in groupby(changes, key=attrgetter("entity"))]
        for first in range(0, len(entries), _AT_ONCE):
            some = entries[first : first + _AT_ONCE]
            answer = self._ask(admin.AlterClientQuotasRequest(entries=some, validate_only=validate_only))
            for entry in (entry for entry in answer.entries if entry.error_code):
                told = entry.error_message or f"error {entry.error_code}"
                refusals[_entity(entry.entity)] = lacking if entry.error_code == _NO_RIGHT else told
        return refusals

    def _ask(self, request: Any) -> Any:
        """The answer of a broker within 10 s. Raises Unusable if there is none."""
        try:
            return self._manager.run(self._manager.send, request, self._answering)
        except KafkaError as error:
            raise Unusable(f"the cluster doesn't answer: {_reason(error)}; try again") from None

    def _lacking(self) -> str:
        """The right to write to the topic of the cluster-wide quotas, if this client lacks it; else ""."""
        topic = self._topic.name
        rights = ask_rights(connect(self._config, _WAIT_MS / 1000), [topic])
        if rights.missing.get(topic) or rights.own.get(topic, frozenset()) & {"Write", "All"}:
            return ""
        return "; ".join(no_right("Create" if topic in rights.missing else "Write", f"--topic {topic}", self._config))

    def not_made(self, plan: Plan, refusals: Refusals) -> list[Change]:
        """The changes that were not made: a broker doesn't have them within a minute.

        A cluster-wide quota is made once its record is written: each broker follows the topic.
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
    """The key of an entity's record; None if brokers would refuse it."""
    with suppress(Refused):
        return _record(entity, {})[0]
    return None


def _record(entity: Entity, amounts: Mapping[str, Amount]) -> tuple[bytes, bytes | None]:
    """Key and value of the record of an entity, without a value if it has nothing. Raises Refused as brokers would."""
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
    """The kind of an error: its text could repeat what was configured."""
    return type(error).__name__.removesuffix("Error")


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


def not_enforced(broker: BrokerConfig, sections: Collection[str]) -> Iterator[str]:
    """Why the quotas of these sections may not hold on a broker, as far as it can be seen."""
    try:
        configs = broker.properties()
    except NoAnswer as problem:
        yield f"whether it enforces what is set here can't be seen: {problem}"
        return
    callback = configs.get(f"{PREFIX}class")
    if callback and not callback.startswith("org.quotahost."):
        yield f"{callback} decides about quotas; what is set here holds as far as it follows it"
        return
    lacking = [] if f"{PREFIX}budgets" in configs else [f"{PREFIX}budgets=on"]
    lacking += [] if configs.get(AUTHORIZER) in FENCES else [f"{AUTHORIZER}={FENCES[0]}"]
    if BUDGETS in sections and lacking:
        yield f"budgets of storage are not enforced; set {' and '.join(lacking)}"
    for section, (supplier, kind) in _SUPPLIERS.items():
        # Without quotahost, and with its default supplier, Kafka's own client quotas are enforced.
        by_default = section == CLIENTS and (not callback or _SUPPLIER not in configs)
        if section not in sections or by_default:
            continue
        enforced = _has_supplier(broker, supplier) if callback else False
        if enforced is None:
            yield f"{kind} quotas are enforced only if {_SUPPLIER}, which Kafka hides, has {supplier}"
        elif not enforced:
            yield f"{kind} quotas are not enforced; add {supplier} to {_SUPPLIER}"


def _has_supplier(broker: BrokerConfig, supplier: str) -> bool | None:
    """Whether the broker has a supplier; None if this client may not ask.

    Kafka has a change validated together with all properties in force, and hands on the reason of a refusal. So
    putting a supplier in shadow passes where the broker has it, and is refused where not. Nothing is changed.
    """
    try:
        broker.change(put={f"{PREFIX}shadow": f"{SUPPLIER}{supplier}"}, validate_only=True)
    except NoAnswer as problem:
        return False if NO_SUPPLIER.format(supplier) in str(problem) else None
    return True
