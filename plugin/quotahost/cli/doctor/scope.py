"""Checks that ``factor.scope=topics`` can be kept: somebody must see who writes where, and know what lies on a disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quotahost.cli.broker_file import BrokerFile
from quotahost.cli.console import Finding, weak
from quotahost.cli.doctor.protection import AUTHORIZER, FENCES
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX

#: The built-in factor sources that know volumes, but not which topics have a replica on them.
_WITHOUT_TOPICS: Final = ("log-dirs", "prometheus", "fixed")


def check_scope(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    """Why a factor is for all clients, though its scope is said to be topics."""
    if settings.factor_scope != "topics":
        return
    if broker.get(AUTHORIZER) not in FENCES:
        yield weak(
            f"factor.scope is topics, but {AUTHORIZER} is not the fence, which alone sees who writes to which topic: "
            "a factor is for all clients",
            f"{AUTHORIZER}={FENCES[0]}",
        )
    if settings.factor_source in _WITHOUT_TOPICS:
        yield weak(
            f"factor.scope is topics, but the factor source {settings.factor_source} doesn't know which topics have a "
            "replica on a volume: a factor is for all clients",
            f"{PREFIX}factor.source=snapshots, or cluster-volumes, or local",
        )
