"""Checks that a factor can protect the disks: the fence, the floor, the snapshots, limits on this machine's disks."""

import math
import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from quotahost.broker.disks.file_stores import log_dirs, read_disks
from quotahost.broker.host.plugins import judges_alone
from quotahost.cli.console import Finding, note, weak
from quotahost.cli.property_files import AUTHORIZER, FENCES, BrokerFile
from quotahost.model import LimitType, State
from quotahost.model.volumes import byte_limits
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from quotahost.settings.properties import SNAPSHOT_READERS
from quotahost.settings.storage import match
from quotahost.text import printable
from quotahost.units.show import show_duration, show_number

STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
OPEN: Final = "allow.everyone.if.no.acl.found"
LOCAL_ALONE: Final = (
    "factor.source is local, the default where limits are set: each broker slows its own producers by its own disks, "
    "and a follower's disk that fills stops nobody, so protection is not cluster-wide"
)
SEE_ALL: Final = f"{PREFIX}factor.source=snapshots and {PREFIX}tasks=publish-volumes on all brokers (docs/disks.md)"
_INNER: Final = f"{PREFIX}fence.authorizer"
#: Properties of StandardAuthorizer: a file that sets one belongs to a cluster with ACLs.
_OF_ACLS: Final = ("super.users", OPEN)
_SESSION: Final = "broker.session.timeout.ms"
_SESSION_MS: Final = 9000  # its default (KRaftConfigs)
#: When a broker dies that is the active controller, the next one waits for a session of its own before it fences it.
_SESSIONS: Final = 2
_MESSAGE_MAX: Final = 1_048_588  # Kafka's default of message.max.bytes (ServerLogConfigs)
#: Properties that a cluster of several nodes sets, to a number above 1 or a list.
_OF_SEVERAL: Final = (
    "controller.quorum.voters", "controller.quorum.bootstrap.servers", "default.replication.factor",
    "offsets.topic.replication.factor", "min.insync.replicas",
)  # fmt: skip
#: The factor sources that read this broker's file stores, on which overrides apply.
_LOOK_AT_DISKS: Final = ("local", *SNAPSHOT_READERS)
#: Those that know volumes, but not which topics have a replica on them.
_WITHOUT_TOPICS: Final = ("log-dirs", "prometheus", "fixed")


def check_protection(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    roles = broker.get("process.roles")
    has_fence = broker.get(AUTHORIZER) in FENCES
    if has_fence:
        yield from _behind_the_fence(settings, broker)
        # On a controller it always stays open: Kafka makes the authorizer there as well, but no client produces.
        if settings.factor_source is None and settings.topics.total is None and roles != "controller":
            text = "the fence is installed, but without a factor source or topic quotas it never has a reason to close"
            yield weak(text, f"set {PREFIX}factor.source, or take the fence out of {AUTHORIZER}")
    yield from _scope(settings, has_fence)
    if settings.factor_source is None:
        if settings.policy is not None:
            yield weak("a policy is named, but no factor.source that it could judge", f"set {PREFIX}factor.source")
        return
    if not has_fence:
        authorizer = broker.get(AUTHORIZER)
        yield weak(
            f"a factor source is set, but {AUTHORIZER} is {authorizer or 'not set'}, not the fence: PAUSE then only "
            f"slows each producer to floor.bytes ({show_number(settings.floor_bytes)} bytes/s), and a producer that "
            "opens new connections escapes even that",
            f"{AUTHORIZER}={FENCES[0]} and {_INNER}={authorizer or 'none'}, on brokers and controllers",
        )
    elif settings.pause_creation == "refuse" and roles in ("controller", "broker"):
        yield from _creation(settings, roles)
    yield from _fallback(settings)
    yield from _other_brokers(settings, broker)
    yield from _floor(settings, broker)
    # A controller has no log directories of clients' topics.
    if settings.static.storage.any_limit:
        yield from _volumes(settings, broker, has_disks=not roles or "broker" in roles)


def _behind_the_fence(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    acls = [name for name in _OF_ACLS if broker.get(name)]
    if settings.fence_authorizer == STANDARD and not acls:
        text = "behind the fence, StandardAuthorizer denies what no ACL allows, also to brokers"
        remedy = f"{_INNER}=none if the cluster has no authorizer"
        yield weak(f"{text}; neither {' nor '.join(_OF_ACLS)} is set", remedy)
    if settings.fence_authorizer == "none" and acls:
        text = f"fence.authorizer is none, but {' and '.join(acls)} is set, as where ACLs are in use"
        remedy = f"{_INNER}={STANDARD}, or remove {' and '.join(acls)}"
        yield weak(f"{text}: behind this fence nobody's rights are checked", remedy)


def _creation(settings: Settings, role: str) -> Iterator[Finding]:
    """Whether anybody refuses new topics in a PAUSE, where controllers are nodes of their own."""
    address = f"{PREFIX}static.kafka.admin.bootstrap.servers"
    if settings.factor_source not in SNAPSHOT_READERS:
        text = "in a PAUSE topics and partitions are still created: a controller that is no broker can only follow"
        cordon = "the task cordon keeps new replicas off full volumes (Kafka 4.3 and newer)"
        yield note(f"{text} {' and '.join(SNAPSHOT_READERS)}; {cordon}")
    elif role == "broker":
        text = "in a PAUSE controllers refuse new topics and partitions if they have the fence, this factor source and"
        yield note(f"{text} {address}: let quotahost doctor look at their properties, too")
    elif not judges_alone(settings):
        text = "in a PAUSE this controller still creates topics and partitions, since it doesn't know the brokers"
        yield note(f"{text}; {address}, and credentials there, let it follow their disks")


def _scope(settings: Settings, has_fence: bool) -> Iterator[Finding]:
    """Why a factor is for all clients, though its scope is said to be topics, and why budgets hold nobody."""
    by_topic = {"budgets is on": settings.budgets == "on", "factor.scope is topics": settings.factor_scope == "topics"}
    for what in (what for what, is_set in by_topic.items() if is_set and not has_fence):
        text = f"{what}, but {AUTHORIZER} is not the fence, which alone sees who writes to which topic"
        yield weak(f"{text}: budgets slow nobody, and a factor is for all clients", f"{AUTHORIZER}={FENCES[0]}")
    if settings.factor_scope == "topics" and settings.factor_source in _WITHOUT_TOPICS:
        text = f"factor.scope is topics, but the factor source {settings.factor_source} doesn't know which topics a"
        remedy = f"{PREFIX}factor.source=snapshots, or cluster-volumes, or local"
        yield weak(f"{text} volume has: a factor is for all clients", remedy)


def _fallback(settings: Settings) -> Iterator[Finding]:
    if settings.fallback_action is State.OPEN:
        text = "fallback.action is OPEN: when nothing is known of the disks, they are not protected"
        yield weak(text, f"{PREFIX}fallback.action=PAUSE")
    hard = [settings.static.storage.hard_limit, *(override.hard for override in settings.static.storage.overrides)]
    if any(limit and limit.type is not LimitType.CONSUMED_BYTES and limit.level == 0 for limit in hard):
        text = "a hard limit leaves nothing free: Kafka takes a log directory offline as soon as an append to it fails"
        remedy = f"{PREFIX}static.storage.hard.min-free-bytes=5G, alone, or as much in the volume's own entry"
        yield weak(text, remedy)
    if settings.validity <= 2 * settings.factor_interval:
        text = "validity is not above twice factor.interval: one late read, and the fallback is in force"
        yield weak(text, f"a longer {PREFIX}validity")


def _other_brokers(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    """Whether the disks of other brokers are seen, and a broker that dies is fenced before it counts as silent."""
    source = settings.factor_source
    several = [
        f"{name}={broker.get(name)}"
        for name in _OF_SEVERAL
        if "," in broker.get(name) or _number(broker, name, default=0) > 1
    ]
    if source == "local" and several:
        yield weak(f"{LOCAL_ALONE} ({several[0]}: there are several nodes)", SEE_ALL)
    if source not in SNAPSHOT_READERS:
        return
    if "publish-volumes" not in settings.tasks:
        text = "the task publish-volumes is not named: no other broker learns of this one's disks"
        yield weak(f"factor.source is {source}, but {text}", f"add publish-volumes to {PREFIX}tasks")
    session = timedelta(milliseconds=_number(broker, _SESSION, _SESSION_MS))
    least = _SESSIONS * session + settings.snapshots_period
    if settings.validity < least and settings.fenced_brokers != "unknown":
        yield weak(
            f"validity ({show_duration(settings.validity)}) is shorter than it may take Kafka to fence a broker that "
            f"died ({_SESSION} is {show_duration(session)}, and twice that if it was the active controller): until "
            "then all producers are stopped",
            f"{PREFIX}validity={math.ceil(least.total_seconds())}s, or a shorter {_SESSION}",
        )


def _number(broker: BrokerFile, name: str, default: int) -> int:
    text = broker.get(name)
    return int(text) if text.isdecimal() else default  # a value that is no number is Kafka's to refuse


def _floor(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    """Whether one batch at the floor takes longer than ``max.mute``, so that Kafka mutes the producer for longer."""
    largest, floor = _number(broker, "message.max.bytes", _MESSAGE_MAX), settings.floor_bytes
    mute = settings.max_mute.total_seconds()
    if floor * mute < largest:
        yield weak(
            f"one record batch of message.max.bytes ({largest:,}) at floor.bytes ({show_number(floor)} bytes/s) mutes "
            f"its producer for {largest / floor:,.0f} s, longer than max.mute ({show_duration(settings.max_mute)})",
            f"{PREFIX}floor.bytes={math.ceil(largest / mute)}, or a longer {PREFIX}max.mute",
        )


def _volumes(settings: Settings, broker: BrokerFile, has_disks: bool) -> Iterator[Finding]:
    """Overrides that apply to nothing, and limits that are reached on the file stores of this machine."""
    overrides = settings.static.storage.overrides
    if overrides and settings.factor_source not in _LOOK_AT_DISKS and "publish-volumes" not in settings.tasks:
        text = f"static.storage.overrides apply to no volume: the factor source {settings.factor_source}"
        yield weak(f"{text} doesn't look at this broker's disks", f"{PREFIX}factor.source=local or snapshots")
    here = [name for name in log_dirs(broker.properties) if os.path.exists(name)]  # noqa: PTH110 - Path.exists() raises where it may not look
    # The doctor may run on another machine, where the broker's paths say nothing.
    if not here or not has_disks:
        return
    disks = read_disks(broker.get("node.id"), here)
    volumes = {volume.name: volume for volume in disks.volumes}
    # Directories that are not here have "" for a volume, so that their overrides are not judged as unmatched.
    known = dict.fromkeys(log_dirs(broker.properties), "") | dict(disks.places)
    matched = match(overrides, list(volumes), known)
    for name in matched.unmatched:
        text = f"{printable(name)} is no volume or log directory of this broker: it applies to nothing"
        yield weak(f"static.storage.overrides: {text}", f"name one of {', '.join([*known, *volumes])}")
    for text in matched.conflicts:
        yield weak(f"static.storage.overrides: {text}", "write the limits of a volume in one entry")
    for volume in disks.volumes:
        soft, hard = matched.limits.get(volume.name, (None, None))
        hard = hard or settings.static.storage.hard_limit
        limits = byte_limits(volume, soft or settings.static.storage.soft_limit, hard)
        if limits is None or volume.consumed < limits.hard:
            continue
        what = f"its hard limit {hard} is reached at {limits.hard:,}" if hard else "it is full"
        never = ", so that it can't be kept however much is deleted" if limits.hard == 0 else ""
        text = f"volume {printable(volume.name)}: {volume.consumed:,} of {volume.capacity:,} bytes are used, and {what}"
        remedy = f"free space, or another limit in {PREFIX}static.storage.*"
        yield weak(f"{text}{never}: the broker would start in PAUSE", remedy)
