"""Makes a file of the quotas that a cluster has, which reads back as the same quotas."""

from __future__ import annotations

import math
from typing import Any, Final

import yaml

from quotahost.declared.entities import DEFAULT, DEFAULT_NAME, Default, Entity, Quotas
from quotahost.units.parse import UNLIMITED
from quotahost.units.show import shorthand

_HEAD: Final = "# Client quotas of a Kafka cluster; see `quotahost quotas --help`.\n"


def in_yaml(quotas: Quotas) -> str:
    """The text of a file; entities in the order of tables, rates in the shortest exact form."""
    entries: dict[str, list[dict[str, Any]]] = {"quotas": [], "cluster-quotas": []}
    for entity in sorted(quotas, key=Entity.order):
        rates = {key: _rate(value) for key, value in sorted(quotas[entity].items()) if declarable(entity, value)}
        entry = {kind: _name(name) for kind, name in entity.parts().items()} | rates
        entries["cluster-quotas" if entity.in_cluster else "quotas"].append(entry)
    content = {name: each for name, each in entries.items() if each or name == "quotas"}
    dumped: str = yaml.dump(content, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=1_000_000)
    return _HEAD + dumped


def declarable(entity: Entity, value: float) -> bool:
    """Whether a file can say it: Kafka's controller lets NaN and infinity pass for two keys, and limits nobody then."""
    return not math.isnan(value) and (entity.in_cluster or not math.isinf(value))


def _rate(value: float) -> str | int | float:
    """``10M``, ``unlimited``, or the number."""
    if math.isinf(value):
        return UNLIMITED
    return shorthand(value) or (int(value) if value.is_integer() else value)


def _name(name: str | Default) -> Any:
    if name is DEFAULT:
        return DEFAULT_NAME
    return {"name": name} if name == DEFAULT_NAME else str(name)


class _Dumper(yaml.SafeDumper):
    """Without aliases, and with lists that are indented."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write each value where it belongs."""
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """Escape what isn't printable: in other quotes PyYAML would write U+0085 as it is, which reads as a blank."""
        return self.represent_scalar("tag:yaml.org,2002:str", data, None if data.isprintable() else '"')

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists, too."""
        super().increase_indent(flow, False)


_Dumper.add_representer(str, _Dumper.represent_str)
