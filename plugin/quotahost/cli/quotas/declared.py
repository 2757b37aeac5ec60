"""What files declare: quotahost's own YAML, and lists of Strimzi's KafkaUser resources.

A file may have several YAML documents of either kind; several files count as one. The models below are the form of a
document, checked by pydantic; the parsers of their fields say what to write. Every problem of all files is told at
once, with file, line, path, value and remedy. What an earlier version kept in brokers' properties is declared, too.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Self, TypeVar

import javaproperties
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from quotahost.cli.quotas.plan import DEFAULT_NAME, OF_ADDRESSES, OF_CLIENTS, OF_CLUSTER, Entity
from quotahost.cli.quotas.yaml_file import DeclarationError, Document, Way, read_documents
from quotahost.model import DEFAULT, Default
from quotahost.settings.declaration import PREFIX
from quotahost.settings.rate_lists import parse_client_rates, parse_rates
from quotahost.text import nearest, printable
from quotahost.units.parse import MAX_COUNT, MAX_SIZE, UNLIMITED, parse_limit, parse_percent, parse_quantity

__all__ = ["DeclarationError", "Declared", "read_declared", "read_properties"]

# ---- fields ----------------------------------------------------------------------------------------

_HOST: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
_LEAVE_OUT: Final = "leave the key out, which leaves the next level's quota, or write a large rate such as 1000T"


def _name(value: object) -> str | Default:
    """A name, or Kafka's default; a name that looks like the default stands in a mapping, ``{name: <default>}``."""
    if isinstance(value, dict) and list(value) == ["name"]:
        value = value["name"]
    elif value == DEFAULT_NAME:
        return DEFAULT
    if not isinstance(value, str) or not value:
        raise ValueError(f"is no name; write one, or {DEFAULT_NAME}; Kafka has no quotas for the empty name")
    return value


def _address(value: object) -> str | Default:
    """An IP address, a host's name that brokers can resolve, or Kafka's default."""
    name = _name(value)
    if name is DEFAULT or _HOST.fullmatch(str(name)):
        return name
    try:
        ipaddress.ip_address(str(name))
    except ValueError:
        raise ValueError(f"is no address; write one such as 10.0.0.7, a host's name, or {DEFAULT_NAME}") from None
    return name


def _whole(value: object, most: int = MAX_SIZE) -> float:
    """A whole number a second, above 0, with the units of sizes."""
    number = _above_0(value)
    if number != math.floor(number):
        raise ValueError("is no whole number, and Kafka takes no other here; round it")
    if number > most:
        raise ValueError(f"is above {most}, the most that Kafka takes; {_LEAVE_OUT}")
    return number


def _above_0(value: object, parse: Any = parse_quantity) -> float:
    if value is None:
        raise ValueError("is empty; write a rate such as 10M, or leave the key out")
    if value == UNLIMITED:
        raise ValueError(f"can't be {UNLIMITED} in Kafka; {_LEAVE_OUT}")
    return float(parse(value))


# None only where the key is left out: a key without a value is a mistake.
_Name = Annotated[str | Default | None, BeforeValidator(_name)]
# Of clients without a client-id: the empty one beside a user.
_ClientId = Annotated[str | Default | None, BeforeValidator(lambda value: value if value == "" else _name(value))]
_Address = Annotated[str | Default | None, BeforeValidator(_address)]
_Whole = Annotated[float | None, BeforeValidator(_whole)]
_Count = Annotated[float | None, BeforeValidator(lambda value: _whole(value, MAX_COUNT))]
_Percent = Annotated[float | None, BeforeValidator(lambda value: _above_0(value, parse_percent))]
_Rate = Annotated[float | None, BeforeValidator(_above_0)]
_ClusterRate = Annotated[float | None, BeforeValidator(lambda v: math.inf if v == UNLIMITED else _above_0(v))]

# ---- forms -----------------------------------------------------------------------------------------


class _Form(BaseModel):
    """A mapping without unknown keys, whose errors don't repeat its values: ``_Reading`` shows them once."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, populate_by_name=False)


class _Entry(_Form):
    """Quotas of one entity, by the keys that its section has."""

    keys: ClassVar[Iterable[str]]

    user: _Name = None
    client_id: _Name = Field(None, alias="client-id")

    def entity(self) -> Entity:
        return Entity(self.user, self.client_id)

    def quotas(self) -> dict[str, float]:
        return _given(self, self.keys)


class _ClientEntry(_Entry):
    """Kafka's own client quotas."""

    keys = (*OF_CLIENTS, *OF_ADDRESSES)

    ip: _Address = None
    producer_byte_rate: _Whole = None
    consumer_byte_rate: _Whole = None
    request_percentage: _Percent = None
    controller_mutation_rate: _Rate = None
    connection_creation_rate: _Count = None

    def entity(self) -> Entity:
        return Entity(self.user, self.client_id, self.ip)

    @model_validator(mode="after")
    def _one_entity(self) -> Self:
        named = self.model_fields_set & {"user", "client_id", "ip"}
        if not named:
            raise ValueError("names nobody; write user, client-id, both, or ip")
        if "ip" in named and len(named) > 1:
            raise ValueError("has an ip beside a user or client-id; Kafka has quotas for either, so write two entries")
        allowed = OF_ADDRESSES if "ip" in named else OF_CLIENTS
        if wrong := sorted(self.quotas().keys() - allowed):
            raise ValueError(f"has {wrong[0]}, which Kafka has not for {self.entity()}; write {', '.join(allowed)}")
        return self


class _ClusterEntry(_Entry):
    """Cluster-wide quotas."""

    keys = OF_CLUSTER

    client_id: _ClientId = Field(None, alias="client-id")
    produce: _ClusterRate = None
    fetch: _ClusterRate = None

    def entity(self) -> Entity:
        return Entity(self.user, self.client_id, in_cluster=True)

    @model_validator(mode="after")
    def _one_entity(self) -> Self:
        if self.user is None and not self.client_id:
            raise ValueError(f"names nobody; write user, client-id, or both; user: {DEFAULT_NAME} is for all others")
        if self.client_id is DEFAULT or (self.user is DEFAULT and self.client_id is not None):
            raise ValueError(
                f"has a default that cluster-quota has not; write user: {DEFAULT_NAME} alone, for all others"
            )
        return self


def _given(entry: BaseModel, keys: Iterable[str]) -> dict[str, float]:
    return {key: value for key in keys if (value := getattr(entry, key, None)) is not None}


class _OwnDocument(_Form):
    """The whole of a document of quotahost's own."""

    prune: bool = False
    quotas: list[_ClientEntry] | None = None
    cluster_quotas: list[_ClusterEntry] | None = Field(None, alias="cluster-quotas")


class _Metadata(BaseModel):
    name: str = Field(min_length=1)


class _Authentication(BaseModel):
    type: str | None = None


class _StrimziQuotas(BaseModel):
    """``spec.quotas`` of a KafkaUser."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    producer_byte_rate: _Whole = Field(None, alias="producerByteRate")
    consumer_byte_rate: _Whole = Field(None, alias="consumerByteRate")
    request_percentage: _Percent = Field(None, alias="requestPercentage")
    controller_mutation_rate: _Rate = Field(None, alias="controllerMutationRate")


class _Spec(BaseModel):
    authentication: _Authentication | None = None
    quotas: _StrimziQuotas | None = None


class _KafkaUser(BaseModel):
    """What a KafkaUser says of quotas; all else in it is left to Strimzi's user operator."""

    metadata: _Metadata
    spec: _Spec | None = None

    def entity(self) -> Entity:
        """Kafka's name of the user: ``KafkaUserModel.getUserName`` of Strimzi's user operator."""
        name = self.metadata.name
        method = self.spec and self.spec.authentication and self.spec.authentication.type
        return Entity(user=f"CN={name}" if method in ("tls", "tls-external") else name)

    def quotas(self) -> dict[str, float]:
        """By Kafka's keys. The operator takes away the quotas of a user without ``spec.quotas``, so it has none."""
        return _given(self.spec.quotas, OF_CLIENTS) if self.spec and self.spec.quotas else {}


# ---- files -----------------------------------------------------------------------------------------

_M = TypeVar("_M", bound=BaseModel)
_OWN: Final = ("prune", "quotas", "cluster-quotas")
_MODELS: Final = (_OwnDocument, _ClientEntry, _ClusterEntry)
_MOST_PROBLEMS: Final = 100


@dataclass(slots=True)
class Declared:
    """What the files say.

    Attributes:
        quotas: by entity and key.
        sections: what is managed at all: False for Kafka's client quotas, True for cluster-wide ones.
        prune: whether a file asks for the removal of what no file names.
        left_out: resources of Kubernetes that are no KafkaUser: kind and name.
    """

    quotas: dict[Entity, dict[str, float]] = field(default_factory=dict)
    sections: set[bool] = field(default_factory=set)
    prune: bool = False
    left_out: list[str] = field(default_factory=list)


def read_declared(files: Iterable[Path]) -> Declared:
    """All that the files declare.

    Raises:
        DeclarationError: it names each problem with file, line, path, value and remedy.
    """
    reading = _Reading()
    for file in files:
        for document in read_documents(file):
            reading.document(document)
    if reading.problems:
        more = len(reading.problems) - _MOST_PROBLEMS
        last = [f"... and {more} more problems"] if more > 0 else []
        raise DeclarationError("\n".join(reading.problems[:_MOST_PROBLEMS] + last))
    return reading.declared


class _Reading:
    """Gathers what documents declare, and every problem in them."""

    def __init__(self) -> None:
        self.declared = Declared()
        self.problems: list[str] = []
        self._places: dict[Entity, tuple[Document, Way]] = {}

    def document(self, document: Document) -> None:
        """Take one document over."""
        if not isinstance(document.content, dict):
            self._problem(document, (), f"is no mapping; write {', '.join(_OWN)}, or a KafkaUser")
        elif "kind" in document.content:
            self._resource(document, (), document.content)
        elif declaration := self._checked(document, (), document.content, _OwnDocument):
            self.declared.prune |= declaration.prune
            sections: tuple[tuple[str, Sequence[_Entry] | None], ...] = (
                ("quotas", declaration.quotas),
                ("cluster-quotas", declaration.cluster_quotas),
            )
            for section, entries in sections:
                if entries is not None:
                    self.declared.sections.add(section == "cluster-quotas")
                for number, entry in enumerate(entries or ()):
                    self._add(document, (section, number), entry.entity(), entry.quotas())

    def _resource(self, document: Document, way: Way, resource: Any) -> None:
        """A resource of Kubernetes, or a list of them as ``kubectl get -o yaml`` prints it."""
        kind = resource.get("kind") if isinstance(resource, dict) else None
        if kind in ("List", "KafkaUserList"):
            items = resource.get("items") or []
            for number, item in enumerate(items if isinstance(items, list) else ()):
                self._resource(document, (*way, "items", number), item)
        elif kind == "KafkaUser":
            self.declared.sections.add(False)
            if user := self._checked(document, way, resource, _KafkaUser):
                self._add(document, way, user.entity(), user.quotas())
        else:
            metadata = resource.get("metadata") if isinstance(resource, dict) else None
            name = metadata.get("name") if isinstance(metadata, dict) else None
            self.declared.left_out.append(printable(f"{kind} {name or ''}".strip()))

    def _add(self, document: Document, way: Way, entity: Entity, quotas: dict[str, float]) -> None:
        if other := self._places.get(entity):
            other_place = other[0].place(other[1])
            self._problem(document, way, f"{entity} is declared in {other_place}, too; keep one of both")
        self._places[entity] = (document, way)
        self.declared.quotas[entity] = quotas

    def _checked(self, document: Document, way: Way, content: Any, model: type[_M]) -> _M | None:
        try:
            return model.model_validate(content)
        except ValidationError as error:
            for details in error.errors(include_url=False, include_context=False):
                words = _told(content, details["loc"], details["type"], details["msg"], _keys(model))
                self._problem(document, (*way, *details["loc"]), *words)
            return None

    def _problem(self, document: Document, way: Way, *words: str) -> None:
        self.problems.append(" ".join((f"{document.place(way)}:", *words)))


def _keys(model: type[BaseModel]) -> list[str]:
    """The keys that may have been meant in a document of this form."""
    models = (_StrimziQuotas,) if model is _KafkaUser else _MODELS
    return [info.alias or name for form in models for name, info in form.model_fields.items()]


def _told(content: Any, way: Sequence[str | int], kind: str, message: str, keys: Sequence[str]) -> Iterator[str]:
    """The value, if it is one, and what is wrong with it."""
    if kind == "extra_forbidden":
        like = nearest(str(way[-1]), keys)
        yield "is an unknown key" + (f"; did you mean {like}?" if like else "; see docs/quotas.md for those that exist")
        return
    value = _at(content, way)
    if kind != "missing" and isinstance(value, str | None):
        yield "nothing" if value is None else printable(value)
    yield message.removeprefix("Value error, ")


def _at(content: Any, way: Sequence[str | int]) -> Any:
    for part in way:
        try:
            content = content[part]
        except (KeyError, IndexError, TypeError):
            return ()
    return content


# ---- the properties of earlier versions ------------------------------------------------------------

_OLD: Final = f"{PREFIX}plugin.cluster-quota."


def read_properties(file: Path) -> Declared:
    """The cluster-wide quotas of a properties file: ``client.quota.callback.plugin.cluster-quota.*``.

    Earlier versions kept them there: ``produce`` and ``fetch``, each with ``.default``, ``.users``, ``.client-ids`` and
    ``.clients``.

    Raises:
        DeclarationError: the file can't be read, has no such property, or a wrong one.
    """
    try:
        with file.open("rb") as stream:
            properties: dict[str, str] = javaproperties.load(stream)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no properties file"
        raise DeclarationError(f"{file} can't be read: {reason}; name a server.properties") from None
    declared = Declared(sections={True})
    problems = []
    for name, text in properties.items():
        if name.startswith(_OLD) and name != f"{_OLD}tell":
            try:
                for entity, key, rate in _quotas_of(name.removeprefix(_OLD), text):
                    declared.quotas.setdefault(entity, {})[key] = math.inf if rate is None else rate
            except ValueError as error:
                problems.append(f"{file}: {name} {error}")
    if problems:
        raise DeclarationError("\n".join(problems))
    if not declared.quotas:
        raise DeclarationError(f"{file} has no quotas of {_OLD}*; nothing is to be taken over from it")
    return declared


def _quotas_of(name: str, text: str) -> Iterator[tuple[Entity, str, float | None]]:
    """Entity, type and rate of each quota in one property, such as ``produce.users``; None is unlimited."""
    kind, _, names = name.partition(".")
    if kind not in OF_CLUSTER:
        raise ValueError("is no property that quotahost had")
    rates: Mapping[tuple[str | Default | None, str | None], float | None]
    if names == "default":
        rates = {(DEFAULT, None): parse_limit(text)}
    elif names == "clients":
        rates = dict(parse_client_rates(text).items())
    elif names in ("users", "client-ids"):
        by_name = parse_rates(text)
        rates = {(key, None) if names == "users" else (None, key): rate for key, rate in by_name.items()}
    else:
        raise ValueError("is no property that quotahost had")
    for (user, client_id), rate in rates.items():
        yield Entity(user, client_id, in_cluster=True), kind, rate
