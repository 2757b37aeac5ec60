"""Checks that quotahost's topics are not open to all: whoever may write to one decides about other clients.

``quotahost.records.topics`` declares the topics and who needs which rights. From a properties file the check sees
whether there is an authorizer at all; ``--against`` has it ask a running cluster, as somebody without credentials.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import javaproperties

from quotahost.cli.broker_file import BrokerFile
from quotahost.cli.console import Finding, good, note, weak
from quotahost.cli.doctor.protection import AUTHORIZER, FENCES
from quotahost.errors import QuotahostError
from quotahost.plugins.kafka.rights import CHANGES, NoAnswer, Rights, ask
from quotahost.records.topics import CLUSTER_VOLUMES, SHARES, SNAPSHOTS, TOPICS, USAGE, Topic
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX

_STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_OPEN: Final = "allow.everyone.if.no.acl.found"
_RECIPE: Final = "the rights of docs/security.md (conf/secured/acls.sh)"


def check_rights(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    """What lets everybody write to the topics that this broker believes, as far as its properties show it."""
    believed = [name for name, topic in named(settings).items() if topic in _believed(settings)]
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
            f"an authorizer ({_STANDARD}) and {_RECIPE}",
        )
    elif broker.get(_OPEN).lower() == "true":
        yield weak(
            f"{_OPEN} is true: unless ACLs are set for {topics}, everybody may write there, and this broker decides by "
            "it about all producers",
            f"{_OPEN}=false, or {_RECIPE}",
        )


def _believed(settings: Settings) -> Iterator[Topic]:
    """The topics by which a broker with these settings decides."""
    sources = {settings.factor_source, settings.factor_source_second}
    if settings.factor_source == "cluster-volumes":
        yield CLUSTER_VOLUMES
    if "snapshots" in sources or settings.factor_source == "cluster-volumes":
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
        }
    )
    return {names.get(topic.brokers_property, topic.name): topic for topic in TOPICS}


def read_client_config(path: Path) -> dict[str, str]:
    """Read a properties file in librdkafka's names.

    Raises:
        QuotahostError: it can't be read. The message has nothing of its contents.
    """
    try:
        with path.open("rb") as stream:
            return dict(javaproperties.load(stream))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no properties file"
        raise QuotahostError(f"{path} can't be read: {reason}; name a file in librdkafka's names") from None


def check_cluster(against: str, config: Mapping[str, str], settings: Settings | None) -> Iterator[Finding]:
    """What everybody may do with the topics of a running cluster.

    Args:
        against: HOST:PORT of one of its brokers.
        config: how to connect, in librdkafka's names, secrets among it; empty to connect as anybody can.
        settings: name the topics; without them they have their default names.
    """
    topics = named(settings)
    try:
        rights = ask({**config, "bootstrap.servers": against}, tuple(topics))
    except NoAnswer as problem:
        who = "with these credentials" if config else "a client without credentials"
        yield note(f"{against} doesn't answer {who}: {problem}", "another listener, or --client-config FILE")
        return
    if not config and "Alter" in rights.cluster:
        yield weak(
            f"{against} lets a client without credentials do everything: there is no authorizer, or {_OPEN} is true; "
            f"so everybody who can connect may write to {', '.join(topics)}",
            f"an authorizer ({_STANDARD}) and {_RECIPE}",
        )
        return
    yield from _of_acls(rights, topics)
    # With credentials this may be the brokers' or the pipeline's own principal, whose rights are right.
    yield from _of_client(rights, topics, against, "these credentials" if config else "")


def _of_acls(rights: Rights, topics: Mapping[str, Topic]) -> Iterator[Finding]:
    for topic, pattern, operation in rights.everybody or ():
        yield weak(
            f"an ACL for {pattern} lets everybody (User:*) {operation} {topic}"
            + (f": whoever does {topics[topic].danger}" if operation in CHANGES else ""),
            f"remove it with kafka-acls.sh, and give {_RECIPE}",
        )
    if rights.everybody is None:
        yield note("ACLs are not checked: this client may not look at them", "--client-config FILE of a super user")


def _of_client(rights: Rights, topics: Mapping[str, Topic], against: str, who: str) -> Iterator[Finding]:
    denied = True
    for topic, operations in rights.own.items():
        if operations:
            denied = False
            what = f"may {', '.join(sorted(operations))} {topic}"
            danger = f": whoever does {topics[topic].danger}" if operations & CHANGES else ""
            if who:
                yield note(f"{who} {what}")
            else:
                yield weak(f"on {against} a client without credentials {what}{danger}", _RECIPE)
    if denied and rights.own:
        yield good(f"{who or 'a client without credentials'} has no right to quotahost's topics on {against}")
    elif not rights.own:
        yield note(f"{against} has none of quotahost's topics yet")
