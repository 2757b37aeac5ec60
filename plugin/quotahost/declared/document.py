"""Reads files of declared quotas: quotahost's own, and lists of Strimzi's KafkaUser resources.

A file may have several YAML documents of either kind; several files count as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from quotahost.declared.entities import Entity
from quotahost.declared.models import ClientEntry, ClusterEntry, Entry, KafkaUser, OwnDocument, StrimziQuotas
from quotahost.declared.problems import DeclarationError
from quotahost.declared.tree import Document, Way, read_documents
from quotahost.text import nearest, printable

M = TypeVar("M", bound=BaseModel)
_OWN: Final = ("prune", "quotas", "cluster-quotas")
_MODELS: Final = (OwnDocument, ClientEntry, ClusterEntry)


@dataclass(slots=True)
class Declared:
    """What the files say.

    Attributes:
        quotas: by entity and key.
        sections: what is managed at all: False for Kafka's client quotas, True for those of cluster-quota.
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
        raise DeclarationError("\n".join(reading.problems))
    return reading.declared


class _Reading:
    """Gathers what documents declare, and every problem in them."""

    def __init__(self) -> None:
        self.declared = Declared()
        self.problems: list[str] = []
        self._places: dict[Entity, str] = {}

    def document(self, document: Document) -> None:
        """Take one document over."""
        if not isinstance(document.content, dict):
            self._problem(document, (), f"is no mapping; write {', '.join(_OWN)}, or a KafkaUser")
        elif "kind" in document.content:
            self._resource(document, (), document.content)
        else:
            self._own(document)

    def _own(self, document: Document) -> None:
        made = self._checked(document, (), document.content, OwnDocument)
        if made is None:
            return
        self.declared.prune |= made.prune
        sections: tuple[tuple[str, Sequence[Entry] | None], ...] = (
            ("quotas", made.quotas),
            ("cluster-quotas", made.cluster_quotas),
        )
        for name, entries in sections:
            if entries is not None:
                self.declared.sections.add(name == "cluster-quotas")
            for number, entry in enumerate(entries or ()):
                self._add(document, (name, number), entry.entity(), entry.quotas())

    def _resource(self, document: Document, way: Way, resource: Any) -> None:
        """A resource of Kubernetes, or a list of them as ``kubectl get -o yaml`` prints it."""
        kind = resource.get("kind") if isinstance(resource, dict) else None
        if kind in ("List", "KafkaUserList"):
            items = resource.get("items") or []
            for number, item in enumerate(items if isinstance(items, list) else ()):
                self._resource(document, (*way, "items", number), item)
        elif kind == "KafkaUser":
            self.declared.sections.add(False)
            if user := self._checked(document, way, resource, KafkaUser):
                self._add(document, way, user.entity(), user.quotas())
        else:
            name = resource.get("metadata") if isinstance(resource, dict) else None
            named = name.get("name") if isinstance(name, dict) else None
            self.declared.left_out.append(printable(f"{kind} {named or ''}".strip()))

    def _add(self, document: Document, way: Way, entity: Entity, quotas: dict[str, float]) -> None:
        place = document.place(way)
        if entity in self._places:
            self.problems.append(f"{place}: {entity} is declared in {self._places[entity]}, too; keep one of both")
        self._places[entity] = place
        self.declared.quotas[entity] = quotas

    def _checked(self, document: Document, way: Way, content: Any, model: type[M]) -> M | None:
        try:
            return model.model_validate(content)
        except ValidationError as error:
            for each in error.errors(include_url=False, include_context=False):
                self._problem(
                    document,
                    (*way, *each["loc"]),
                    *_told(content, each["loc"], each["type"], each["msg"], _keys(model)),
                )
            return None

    def _problem(self, document: Document, way: Way, *words: str) -> None:
        self.problems.append(" ".join((f"{document.place(way)}:", *words)))


def _keys(model: type[BaseModel]) -> list[str]:
    """The keys that may have been meant in a document of this form."""
    models = (StrimziQuotas,) if model is KafkaUser else _MODELS
    return [field.alias or name for each in models for name, field in each.model_fields.items()]


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
