"""``files`` reads and checks declared quotas, labels and budgets, in quotahost's YAML or Strimzi's KafkaUser resources.

1. :func:`read_declared` reads files of one or more YAML documents (``plain_yaml``) of either kind; several files count
   as one.
2. The models below are the form of a document, checked by pydantic; the parsers of their fields say what to write.
   One error names all problems of all files, each with file, line, path, value and remedy.
   A budget without topics gets the topics that ``topic-labels`` has for its label, in any of the files.
3. :func:`in_yaml` writes quotas as a file of quotahost's YAML.
4. :func:`read_properties` reads cluster-wide quotas from the properties of old versions.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Self, TypeAlias, TypeVar

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from quotahost.base.errors import Unusable
from quotahost.base.text import bounded, meant, printable
from quotahost.cli.property_files import read_broker_file
from quotahost.cli.quotas.plain_yaml import Document, Way, documents, dumped
from quotahost.cli.quotas.plan import BUDGETS, CLIENTS, CLUSTER, DEFAULT_NAME, Amount, Entity, Quotas
from quotahost.model import DEFAULT, Default
from quotahost.records.budgets import MAX_PATTERNS, NAME, Of, TopicPattern
from quotahost.settings.declaration import PREFIX
from quotahost.settings.types import parse_keyed_rates, parse_rates, unescaped
from quotahost.units import parse
from quotahost.units.parse import UNLIMITED
from quotahost.units.show import shorthand

_M = TypeVar("_M", bound=BaseModel)
_MOST_PROBLEMS: Final = 100
_LONGEST_LABEL: Final = 200
_HEAD: Final = "# Client quotas of a Kafka cluster; see `quotahost quotas --help`.\n"
#: The messages that replace pydantic's messages, by the kinds of its errors.
_WRONG: Final = {
    "missing": "is missing; write it",
    "too_short": "is empty; write an entry, or leave the key out",
    "string_type": "is not a text; write one",
    "list_type": "is not a list; write [A, B], or each entry after a dash; [] is none",
    "string_pattern_mismatch": "names no topics; write the name of one, or the beginning of names with a * at its end: "
    "orders.*",
    **dict.fromkeys(("dict_type", "model_type"), "is not a mapping; write NAME: VALUE"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "is neither true nor false; write one of them"),
}
_OLD: Final = f"{PREFIX}plugin.cluster-quota."  # the properties of earlier versions

# ---- the form of a document ------------------------------------------------------------------------------------


def _name(value: object) -> str | Default:
    """Return a name, or Kafka's default; a real name ``<default>`` is written as a mapping, ``{name: <default>}``."""
    if isinstance(value, dict) and list(value) == ["name"]:
        value = value["name"]
    elif value == DEFAULT_NAME:
        return DEFAULT
    if not isinstance(value, str) or not value:
        raise ValueError(f"is not a name; write one, or {DEFAULT_NAME}; Kafka has no quotas for the empty name")
    return value


def _above_0(value: object) -> float:
    if value == UNLIMITED:
        remedy = "leave the key out, so that the next level's quota applies, or write a large rate such as 1000T"
        raise ValueError(f"can't be {UNLIMITED} in Kafka; {remedy}")
    return parse.parse_quantity(value or "")


def _percent(value: object) -> float:
    return _above_0(value.removesuffix("%").rstrip() if isinstance(value, str) else value)


# None means that the key is absent; a key without a value is a mistake.
_Name = Annotated[str | Default | None, BeforeValidator(_name)]
# The empty client-id, beside a user, means clients without a client-id.
_ClientId = Annotated[str | Default | None, BeforeValidator(lambda value: value if value == "" else _name(value))]
_Percent = Annotated[float | None, BeforeValidator(_percent)]
_Rate = Annotated[float | None, BeforeValidator(_above_0)]
_ClusterRate = Annotated[float | None, BeforeValidator(lambda v: math.inf if v == UNLIMITED else _above_0(v))]


class _Form(BaseModel):
    """A mapping without unknown keys. Its errors don't repeat values, because :func:`_words` shows each value once."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    def amounts(self) -> dict[str, Amount]:
        return self.model_dump(exclude={"label", "user", "client_id", "ip"}, exclude_none=True)


def _label(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_LABEL:
        raise ValueError(f"is not a label; write a text of 1 to {_LONGEST_LABEL} characters, such as team-a")
    return value


class _Entry(_Form):
    """Quotas of one entity, and the label by which ``quotahost quotas usage`` sums the entity's use."""

    label: Annotated[str | None, BeforeValidator(_label)] = None


class _ClientEntry(_Entry):
    """Kafka's own client quotas of one entity. Kafka itself reports a rate or an address that it doesn't accept."""

    user: _Name = None
    client_id: _Name = Field(None, alias="client-id")
    ip: _Name = None
    producer_byte_rate: _Rate = None
    consumer_byte_rate: _Rate = None
    request_percentage: _Percent = None
    controller_mutation_rate: _Rate = None
    connection_creation_rate: _Rate = None

    def entity(self) -> Entity:
        return Entity(self.user, self.client_id, self.ip)

    @model_validator(mode="after")
    def _one_entity(self) -> Self:
        kinds = self.model_fields_set & {"user", "client_id", "ip"}
        if not kinds:
            raise ValueError("names no client; write user, client-id, both, or ip")
        if "ip" in kinds and len(kinds) > 1:
            raise ValueError("has an ip beside a user or client-id; Kafka has quotas for either, so write two entries")
        if "ip" in kinds and self.label is not None:
            raise ValueError("has a label beside an ip; what an address uses isn't recorded, so leave the label out")
        return self


class _ClusterEntry(_Entry):
    user: _Name = None
    client_id: _ClientId = Field(None, alias="client-id")
    produce: _ClusterRate = None
    fetch: _ClusterRate = None

    def entity(self) -> Entity:
        return Entity(self.user, self.client_id, in_cluster=True)

    @model_validator(mode="after")
    def _one_entity(self) -> Self:
        if self.user is None and not self.client_id:
            raise ValueError(f"names no client; write user, client-id, or both; user: {DEFAULT_NAME} is for all others")
        if self.client_id is DEFAULT or (self.user is DEFAULT and self.client_id is not None):
            raise ValueError(
                f"uses a default that cluster-wide quotas don't have; write user: {DEFAULT_NAME} alone, for all others"
            )
        return self


_Topics = Annotated[list[TopicPattern], Field(min_length=1, max_length=MAX_PATTERNS)]


class _BudgetEntry(_Entry):
    """A budget of storage; a budget without ``topics`` is for the topics of its label."""

    name: str | None = None
    topics: _Topics = Field(default_factory=list)
    size: Annotated[int, BeforeValidator(lambda value: parse.parse_bytes(value or ""))] = Field(alias="bytes")
    of: Of = "leaders"

    def entity(self) -> Entity:
        return Entity(budget=self.name if self.name is not None else self.topics[0] if self.topics else self.label)

    def amounts(self) -> dict[str, Amount]:
        return {"topics": _joined(self.topics), "bytes": self.size, "of": self.of}

    @model_validator(mode="after")
    def _named(self) -> Self:
        if not self.topics and self.label is None:
            raise ValueError("names no topics; write topics: [orders.*], or a label of topic-labels")
        if self.name is None and len(self.topics) > 1:
            raise ValueError("has several topics but no name; write a name for errors and metrics")
        if NAME.fullmatch(str(self.entity().budget)) is None:
            raise ValueError("needs a name of 1 to 64 letters, digits, dots, dashes, underscores or stars; write one")
        return self


def _joined(topics: Iterable[str]) -> str:
    """Return a budget's topics as the text of a plan."""
    return ", ".join(sorted(set(topics)))


class _OwnDocument(_Form):
    """A whole document of quotahost's own form; its keys have dashes for the underscores of these names."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    prune: bool = False
    topic_labels: dict[Annotated[str, BeforeValidator(_label)], _Topics] = Field(default_factory=dict)
    quotas: list[_ClientEntry] = Field(default_factory=list)
    cluster_quotas: list[_ClusterEntry] = Field(default_factory=list)
    budgets: list[_BudgetEntry] = Field(default_factory=list)

    def sections(self) -> "dict[str, Sequence[_Declares]]":
        """Return the entries of each section that the document has, even if the section is []."""
        fields = {section: section.replace("-", "_") for section in _ENTRIES}
        return {section: getattr(self, name) for section, name in fields.items() if name in self.model_fields_set}


class _StrimziQuotas(_Form):
    """``spec.quotas`` of a KafkaUser."""

    producer_byte_rate: _Rate = Field(None, alias="producerByteRate")
    consumer_byte_rate: _Rate = Field(None, alias="consumerByteRate")
    request_percentage: _Percent = Field(None, alias="requestPercentage")
    controller_mutation_rate: _Rate = Field(None, alias="controllerMutationRate")


class _KafkaUser(BaseModel):
    """The quotas of a KafkaUser; all other fields are left to Strimzi's user operator."""

    name: str = Field(min_length=1, validation_alias=AliasPath("metadata", "name"))
    login: str | None = Field(None, validation_alias=AliasPath("spec", "authentication", "type"))
    given: _StrimziQuotas | None = Field(None, validation_alias=AliasPath("spec", "quotas"))
    label: ClassVar[None] = None

    def entity(self) -> Entity:
        """Return the user by Kafka's name, as ``KafkaUserModel.getUserName`` of Strimzi's user operator."""
        return Entity(user=f"CN={self.name}" if self.login in ("tls", "tls-external") else self.name)

    def amounts(self) -> dict[str, Amount]:
        """Return the quotas by Kafka's keys: none without ``spec.quotas``, because the operator removes them then."""
        return self.given.amounts() if self.given else {}


_Declares: TypeAlias = _ClientEntry | _ClusterEntry | _BudgetEntry | _KafkaUser
_ENTRIES: Final[Mapping[str, type[BaseModel]]] = {CLIENTS: _ClientEntry, CLUSTER: _ClusterEntry, BUDGETS: _BudgetEntry}

# ---- what the files declare ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Declared:
    """All that the files declare."""

    quotas: dict[Entity, dict[str, Amount]] = field(default_factory=dict)
    sections: set[str] = field(default_factory=set)  # the names of the sections that a file has: these are managed
    prune: bool = False  # whether a file asks for the removal of quotas that no file names
    left_out: list[str] = field(default_factory=list)  # the kinds of Kubernetes resources that are no KafkaUser
    labels: dict[Entity, str] = field(default_factory=dict)  # by entity


def read_declared(files: Iterable[Path]) -> Declared:
    """Return all that the files declare. Raises Unusable, which names each problem."""
    reading = _Reading()
    for document in chain.from_iterable(map(documents, files)):
        reading.document(document)
    reading.take_entries()
    if reading.problems:
        raise Unusable("\n".join(bounded(reading.problems, _MOST_PROBLEMS, "problems")))
    return reading.declared


class _Reading:
    def __init__(self) -> None:
        self.declared = Declared()
        self.problems: list[str] = []
        self._entries: list[tuple[Document, Way, _Declares]] = []
        self._topics: dict[str, set[str]] = defaultdict(set)  # by label

    def document(self, document: Document) -> None:
        if not isinstance(document.content, dict):
            self._problem(document, (), "isn't a mapping; write prune, quotas, cluster-quotas, budgets, or a KafkaUser")
        elif "kind" in document.content:
            self._resource(document, (), document.content)
        elif own := self._checked(document, (), document.content, _OwnDocument):
            self.declared.prune |= own.prune
            for label, topics in own.topic_labels.items():
                self._topics[label].update(topics)
            for section, entries in own.sections().items():
                self.declared.sections.add(section)
                self._entries += [(document, (section, number), entry) for number, entry in enumerate(entries)]

    def take_entries(self) -> None:
        """Take the entries of all documents, after the last document, when the topics of each label are known."""
        places: dict[Entity, str] = {}
        for document, way, entry in self._entries:
            entity, amounts = entry.entity(), entry.amounts()
            if entry.label is not None:
                self.declared.labels[entity] = entry.label
                if amounts.get("topics") == "":  # only a budget has topics
                    amounts["topics"] = _joined(self._topics.get(entry.label, ()))
                    if not amounts["topics"]:
                        lacking = "has no topics; write topics here, or list the label's under topic-labels"
                        self._problem(document, (*way, "label"), printable(entry.label), lacking)
            if other := places.get(entity):
                self._problem(document, way, f"{entity} is declared in {other}, too; keep one of the two")
            places[entity] = document.place(way)
            self.declared.quotas[entity] = amounts

    def _resource(self, document: Document, way: Way, resource: Any) -> None:
        """Take a Kubernetes resource, or a list of resources as ``kubectl get -o yaml`` prints it."""
        content = resource if isinstance(resource, dict) else {}
        kind = content.get("kind")
        if kind in ("List", "KafkaUserList"):
            items = content.get("items")
            for number, item in enumerate(items if isinstance(items, list) else ()):
                self._resource(document, (*way, "items", number), item)
        elif kind == "KafkaUser":
            self.declared.sections.add(CLIENTS)
            if user := self._checked(document, way, content, _KafkaUser):
                self._entries.append((document, way, user))
        else:
            self.declared.left_out.append(printable(str(kind)))

    def _checked(self, document: Document, way: Way, content: Any, model: type[_M]) -> _M | None:
        try:
            return model.model_validate(content)
        except ValidationError as error:
            for details in error.errors(include_url=False, include_context=False):
                within = [part for part in details["loc"] if part != "[key]"]  # pydantic's mark of a wrong key
                self._problem(document, (*way, *within), *_words(details, model))
            return None

    def _problem(self, document: Document, way: Way, *words: str) -> None:
        self.problems.append(" ".join((f"{document.place(way)}:", *words)))


def _words(details: ErrorDetails, model: type[BaseModel]) -> Iterator[str]:
    """Yield the value, unless it is a list or mapping, and what is wrong with it."""
    if details["type"] == "extra_forbidden":
        *above, key = details["loc"]
        form = _StrimziQuotas if model is _KafkaUser else _ENTRIES[str(above[0])] if above else model
        keys = [info.alias or name for name, info in form.model_fields.items()]
        yield f"is an unknown key; {meant(str(key), keys, 'write one of ' + ', '.join(keys))}"
        return
    if isinstance(value := details["input"], str | None):
        yield "(nothing)" if value is None else printable(value)
    words = details["msg"].removeprefix("Value error, ").replace("Input should be", "is wrong; write")
    yield _WRONG.get(details["type"], words)


# ---- the properties of earlier versions ------------------------------------------------------------------------


def read_properties(file: Path) -> Declared:
    """Return the cluster-wide quotas of a properties file, where earlier versions kept them.

    Their names are ``client.quota.callback.plugin.cluster-quota.``, then ``produce`` or ``fetch``, then ``.default``,
    ``.users``, ``.client-ids`` or ``.clients``. Raises Unusable if the file has no such quota, or a wrong one.
    """
    broker = read_broker_file(file)
    declared = Declared(sections={CLUSTER})
    hidden = "has a value that only the broker's config provider knows; replace ${...} by it in a copy of the file"
    problems = [f"{file}: {name} {hidden}" for name in broker.unresolved if name.startswith(_OLD)]
    for name, text in broker.properties.items():
        kind, _, names = name.removeprefix(_OLD).partition(".")
        if name.startswith(_OLD) and kind != "tell":
            try:
                for (user, client_id), rate in _old_rates(kind, names, text).items():
                    entity = Entity(user, client_id, in_cluster=True)
                    declared.quotas.setdefault(entity, {})[kind] = math.inf if rate is None else rate
            except ValueError as error:
                problems.append(f"{file}: {name}={printable(text)} {error}")
    if problems:
        raise Unusable("\n".join(problems))
    if not declared.quotas:
        raise Unusable(f"{file} has no quotas of {_OLD}*, so there is nothing to take over")
    return declared


def _old_rates(kind: str, names: str, text: str) -> dict[tuple[str | Default | None, str | None], float | None]:
    """Return the rates by user and client-id of one property, such as ``produce.users``; None is unlimited."""
    if kind in ("produce", "fetch"):
        match names:
            case "default":
                return {(DEFAULT, None): parse.parse_limit(text)}
            case "users":
                return {(user, None): rate for user, rate in parse_rates(text).items()}
            case "client-ids":
                return {(None, client_id): rate for client_id, rate in parse_rates(text).items()}
            case "clients":
                return parse_keyed_rates(text, _user_and_client_id)
    raise ValueError("is not a property that quotahost had")


def _user_and_client_id(name: str) -> tuple[str | Default | None, str | None]:
    pair = re.fullmatch(r"((?:\\.|[^\\/])+)/((?:\\.|[^\\/])*)", name, re.DOTALL)
    if pair is None:
        raise ValueError(f"has {name!r}; write USER/CLIENT-ID:RATE, and \\/ for a slash in a name")
    return unescaped(pair[1]), unescaped(pair[2])


# ---- writing ---------------------------------------------------------------------------------------------------


def in_yaml(quotas: Quotas) -> str:
    """Return the text of a file that declares these quotas, in the order of tables, with the shortest exact rates."""
    content: dict[str, list[dict[str, Any]]] = {CLIENTS: [], CLUSTER: [], BUDGETS: []}
    for entity in sorted(quotas, key=Entity.order):
        rates = {key: _written_rate(rate) for key, rate in sorted(quotas[entity].items())}
        names = {kind: _written_name(name) for kind, name in entity.parts().items()}
        if entity.budget is not None:
            names, rates["topics"] = {"name": entity.budget}, rates["topics"].split(", ")
        content[entity.section].append(names | rates)
    return _HEAD + dumped({section: entries for section, entries in content.items() if entries or section == CLIENTS})


def _written_rate(rate: Amount) -> Any:
    """Return ``10M``, ``unlimited``, the number, or a text of a budget."""
    if isinstance(rate, str):
        return rate
    if math.isinf(rate):
        return UNLIMITED
    return shorthand(rate) or (int(rate) if float(rate).is_integer() else rate)


def _written_name(name: str | Default) -> Any:
    if name is DEFAULT:
        return DEFAULT_NAME
    return {"name": name} if name == DEFAULT_NAME else str(name)
