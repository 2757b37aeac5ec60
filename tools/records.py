"""Makes docs/reference/records.md, the reference of the records on topics, from their declarations.

A row's meaning is the comment behind or above the attribute. Its type comes from the JSON schema that pydantic makes
from the declaration.
"""

import ast
import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final

from quotahost.model import Look
from quotahost.records import budgets, cluster_volumes, look, quotas, shares, snapshot, topics, usage, watch
from quotahost.records.codec import Codec
from tools import api

#: The module of each topic's records.
RECORDS: Final[dict[topics.Topic, ModuleType]] = {
    topics.SNAPSHOTS: snapshot,
    topics.CLUSTER_VOLUMES: cluster_volumes,
    topics.USAGE: usage,
    topics.SHARES: shares,
    topics.QUOTAS: quotas,
    topics.WATCH: watch,
    topics.LOOKS: look,
}
_VERSION: Final = "1; a reader refuses any other"


def reference() -> str:
    """A section for each kind of record: its topic, and a table of the fields of its JSON."""
    sections = [*RECORDS.items(), (topics.QUOTAS, budgets)]
    return "\n".join(line for topic, module in sections for line in _section(topic, module))


def _section(topic: topics.Topic, module: ModuleType) -> Iterator[str]:
    codec: Codec[Any] = module.CODEC
    schema, meanings = codec.schema(), _meanings(Look) | _meanings(codec.record)
    of_budgets = ", of budgets of storage" if module is budgets else ""
    yield f"## `{topic.name}`{of_budgets}\n\n{topic.carries[0].upper()}{topic.carries[1:]}.\n"
    yield "| field | JSON | must be there | meaning |\n|---|---|---|---|"
    # pydantic puts the version last, because the version is no positional argument.
    attributes = sorted((field.name for field in dataclasses.fields(codec.record)), key=lambda name: "version" in name)
    for attribute, (name, form) in zip(attributes, schema["properties"].items(), strict=True):
        needed = "yes" if name in schema["required"] else ""
        meaning = _VERSION if "version" in attribute else _of_json(meanings[attribute], module)
        yield f"| `{name}` | {_kind(form, schema.get('$defs', {}))} | {needed} | {meaning} |"
    yield ""


def _meanings(record: type[Any]) -> dict[str, str]:
    """The comments of a class's attributes, each in one line that begins with a small letter."""
    source = inspect.getsource(record)
    (owner,) = ast.parse(source).body
    assert isinstance(owner, ast.ClassDef)
    said = {name: api.comment(node, source) for node in owner.body for name in api.names(node)}
    return {name: f"{text[0].lower()}{text[1:].removesuffix('.')}." for name, text in said.items() if text}


def _of_json(meaning: str, module: ModuleType) -> str:
    """The comment's text, in which null replaces None, and a constant's number replaces its name."""
    meaning = meaning.replace("None", "null").replace("``", "`")
    return re.sub(r"MAX_\w+", lambda name: str(getattr(module, name[0])), meaning)


def _kind(form: Mapping[str, Any], named: Mapping[str, Any]) -> str:
    """A JSON schema in words."""
    if "$ref" in form:
        return _kind(named[form["$ref"].rpartition("/")[2]], named)
    if "anyOf" in form:
        return " or ".join(_kind(each, named) for each in form["anyOf"])
    if "const" in form:
        return f"`{form['const']}`"
    if "enum" in form:
        return ", ".join(f"`{value}`" for value in form["enum"])
    if form.get("type") == "array":
        most = f", {form['maxItems']} at most" if "maxItems" in form else ""
        # The schema of a list with a fixed length has a form for each item.
        items = form.get("prefixItems") or [form["items"]]
        return f"list{most}, of {' and '.join(_kind(item, named) for item in items)}"
    if form.get("type") == "object":
        fields = (f"`{name}`: {_kind(inner, named)}" for name, inner in form["properties"].items())
        return f"{{{'; '.join(fields)}}}"
    return str(form.get("format", form.get("type", "")))
