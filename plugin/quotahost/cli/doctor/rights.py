"""Checks that quotahost's topics are not open to all: whoever may write to one decides about other clients.

``quotahost.records.topics`` declares the topics and who needs which rights. From a properties file the check sees
whether there is an authorizer at all; :mod:`quotahost.cli.doctor.cluster` asks a running cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from quotahost.cli.broker_file import BrokerFile
from quotahost.cli.console import Finding, weak
from quotahost.cli.doctor.protection import AUTHORIZER, FENCES
from quotahost.records.topics import (
    CLUSTER_VOLUMES,
    LOOKS,
    SHARES,
    SNAPSHOTS,
    TOPICS,
    USAGE,
    WATCH,
    Operation,
    Party,
    Topic,
)
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX

STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
OPEN: Final = "allow.everyone.if.no.acl.found"
RECIPE: Final = "the rights of docs/security.md (conf/secured/acls.sh)"


def check_rights(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    """What lets everybody write to the topics that this broker believes, as far as its properties show it."""
    believed = [name for name, topic in named(settings).items() if topic in believed_topics(settings)]
    if not believed or broker.get("process.roles") == "controller":
        return
    topics = ", ".join(believed)
    authorizer = broker.get(AUTHORIZER)
    inner = settings.fence_authorizer if authorizer in FENCES else authorizer
    if not inner or inner == "none":
        which = f"{PREFIX}fence.authorizer is none" if authorizer in FENCES else f"{AUTHORIZER} is not set"
        yield weak(
            f"{which}: everybody who can connect may write to {topics}, and this broker decides by that about all "
            "producers",
            f"an authorizer ({STANDARD}) and {RECIPE}",
        )
    elif broker.get(OPEN).lower() == "true":
        yield weak(
            f"{OPEN} is true: unless ACLs are set for {topics}, everybody may write there, and this broker decides by "
            "it about all producers",
            f"{OPEN}=false, or {RECIPE}",
        )


def believed_topics(settings: Settings) -> Iterator[Topic]:
    """The topics by which a broker with these settings decides."""
    if settings.factor_source == "cluster-volumes":
        yield CLUSTER_VOLUMES
    if settings.factor_source in ("snapshots", "cluster-volumes"):
        yield SNAPSHOTS
    if "cluster-quota" in settings.supplier:
        yield from (USAGE, SHARES)


def named(settings: Settings | None) -> dict[str, Topic]:
    """The topics by their names, as these settings have them; by their default names without settings."""
    names: Mapping[str, str] = (
        {}
        if settings is None
        else {
            "snapshots.topic": settings.snapshots_topic,
            "cluster.volumes.topic": settings.cluster_volumes_topic,
            "usage.topic": settings.usage_topic,
            "shares.topic": settings.shares_topic,
            "watch.topic": settings.watch_topic,
            "looks.topic": settings.looks_topic,
        }
    )
    return {names.get(topic.brokers_property, topic.name): topic for topic in TOPICS}


def needed(settings: Settings | None, party: Party) -> dict[str, frozenset[Operation]]:
    """By topic, whether the party must read or write it: without that it doesn't do what is configured.

    Args:
        settings: name the topics and, for the plugins, say which of them they use; without settings all.
        party: who needs it.
    """
    found: dict[str, frozenset[Operation]] = {}
    for name, topic in named(settings).items():
        operations = frozenset[Operation](each for each in topic.operations(party) if each in ("Read", "Write"))
        if settings is not None and party is Party.PLUGINS:
            operations &= _used(settings, topic)
        if operations:
            found[name] = operations
    return found


def _used(settings: Settings, topic: Topic) -> frozenset[Operation]:
    """Which of the operations on a topic a broker with these settings comes to."""
    task = {SNAPSHOTS: "publish-volumes", USAGE: "publish-usage", LOOKS: "publish-usage"}.get(topic)
    watched = topic is WATCH and "publish-usage" in settings.tasks
    reads: tuple[Operation, ...] = ("Read",) if watched or topic in believed_topics(settings) else ()
    writes: tuple[Operation, ...] = ("Write",) if task in settings.tasks else ()
    return frozenset((*reads, *writes))
