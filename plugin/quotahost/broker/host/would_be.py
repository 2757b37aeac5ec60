"""What a supplier in shadow would give a client, as a text that Java keeps with the answer in force.

Java doesn't read the text. It hands it back with a client's quota, to the host and to ``quotahost explain``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import quote

from quotahost.broker.host.dump import BROKER
from quotahost.broker.host.dump import GROUP as GROUP_TAG
from quotahost.broker.host.messages import GROUP
from quotahost.model import QUOTA_TYPES, QuotaType, ScopeKind

#: Who shares a quota: the two values of Kafka's metric tags, user and client-id.
Tags: TypeAlias = tuple[str, str]

_TEXTS: Final = 4096  # how many are remembered; most clients have the text of others
_CLIENT, _USER, _CLIENT_ID, _BROKER = (
    kind.value for kind in (ScopeKind.CLIENT, ScopeKind.USER, ScopeKind.CLIENT_ID, ScopeKind.BROKER)
)


class WouldBe(NamedTuple):
    """A quota that would be in force if its supplier were not in shadow.

    Attributes:
        code: the scope, as in ``messages``; GROUP for every group.
        rate: before the factor, in the unit of its quota type; None is unlimited.
        group: the group's name, "" for another scope.
        supplier: who would give it.
    """

    code: int
    rate: float | None
    group: str
    supplier: str

    @property
    def is_of_client_id(self) -> bool:
        """Whether the scope depends on the client-id."""
        return self.code in (_CLIENT, _CLIENT_ID)

    def tags(self, principal: str, client_id: str) -> Tags:
        """Who would share it: the tags that the scope of this client would have."""
        code = self.code
        if code == _CLIENT:
            return tag(principal), client_id
        if code == _USER:
            return tag(principal), ""
        if code == _CLIENT_ID:
            return "", client_id
        return (BROKER if code == _BROKER else f"{GROUP_TAG}{tag(self.group)}>"), ""


def shadow_text(would: Sequence[tuple[int, float, int] | None], groups: Sequence[str], suppliers: Sequence[str]) -> str:
    """The text of what would be (``rows.Would``), "" for nothing.

    Args:
        would: by quota type the scope's code, the rate and the number of the supplier; None for nothing.
        groups: names of groups, to which codes from GROUP on refer.
        suppliers: names of suppliers by their numbers.
    """
    found: dict[str, WouldBe] = {}
    for quota_type, each in zip(QUOTA_TYPES, would, strict=False):
        if each is not None:
            code, rate, source = each
            group = groups[code - GROUP] if code >= GROUP else ""
            found[quota_type] = WouldBe(min(code, GROUP), None if math.isnan(rate) else rate, group, suppliers[source])
    # In ASCII: half a surrogate pair in a group's name would not get through to Java.
    return json.dumps(found, separators=(",", ":")) if found else ""


@lru_cache(_TEXTS)
def would_be(text: str, quota_type: QuotaType) -> WouldBe | None:
    """What ``shadow_text`` wrote of one type; None is nothing. A broker may have 50,000 such texts, each of its own.

    Raises:
        ValueError: it is no such text.
    """
    fields = json.loads(text).get(quota_type) if text else None
    return None if fields is None else WouldBe(*fields)


@lru_cache(_TEXTS)
def tag(name: str) -> str:
    """A principal's or group's name as Kafka's ``Sanitizer`` writes it into a metric tag: percent-encoded UTF-8."""
    # Python leaves the tilde as it is, Java's URLEncoder doesn't. Of half a surrogate pair Java makes a question mark.
    return quote(name, safe="", errors="replace").replace("~", "%7E")
