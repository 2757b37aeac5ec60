"""The doctor checks a broker's properties: whether quotahost understands them, and which ones protect too little.

1. :func:`check_settings` reads the properties as the broker does. The table of its section lists every property as
   quotahost understands it, with full units and without secrets.
2. :func:`check_weaknesses` looks for settings that are valid, but exempt clients or protect less than they seem to:
   listeners, the plugins' login, quotas and their windows, topic quotas, and whatever keeps a factor from protecting
   the disks (:func:`check_protection`). The module ``topics`` checks the rights to topics. The broker starts with such
   settings, so few of these findings are ``wrong``.
3. :func:`check_stored` finds values that a running cluster stores, and that override the broker's file.
"""

import ipaddress
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Final

from pydantic import BaseModel

from quotahost.base.text import printable
from quotahost.broker.discovery import PluginError, configured, load, plugin_settings, settings_model
from quotahost.broker.disks.file_stores import log_dirs, read_disks
from quotahost.broker.host.broker import client_config
from quotahost.broker.host.exemptions import principal_at
from quotahost.broker.host.plugins import judges_alone
from quotahost.cli.console import Finding, Section, good, note, weak, wrong
from quotahost.cli.doctor.topics import LOCAL_ALONE, OPEN, SEE_ALL, STANDARD, check_rights
from quotahost.cli.property_files import AUTHORIZER, CALLBACK, CLASS, CLASSES, FENCES, INNER, BrokerFile
from quotahost.kafka.admin import BrokerConfig
from quotahost.kafka.client import Admin, NoAnswer, unconnected
from quotahost.kafka.listeners import Listeners
from quotahost.model import LimitType, QuotaType, State
from quotahost.model.volumes import byte_limits
from quotahost.settings.broker import Settings, describe, read_properties
from quotahost.settings.declaration import PREFIX, SettingsError, declared
from quotahost.settings.properties import SNAPSHOT_READERS
from quotahost.settings.storage import match
from quotahost.throttling import quota_windows
from quotahost.units.show import show_duration, show_number

_SENSORS_LIVE: Final = timedelta(hours=1)  # Kafka's ClientQuotaManager.InactiveSensorExpirationTimeSeconds
_ANONYMOUS: Final = "ANONYMOUS"  # Kafka's principal name for a client that didn't authenticate
_EXCLUDED: Final = f"{PREFIX}static.excluded.principal.name.list"

# ---- reading the properties ------------------------------------------------------------------------------------


def check_settings(broker: BrokerFile, with_plugins: bool) -> tuple[Section, Settings | None]:
    """Read the properties as the broker does, ``with_plugins`` also those of plugins. Settings are None if wrong."""
    findings = list(_before_reading(broker))
    try:
        settings, translation = read_properties(broker.properties)
    except SettingsError as error:
        # The plugins' own properties are checked only when all other properties are right.
        return Section("Settings", [*findings, *(wrong(str(problem)) for problem in error.problems)]), None
    own = f"{broker.path}: quotahost's own properties are understood"  # the plugins' properties may still be wrong
    findings.append(good(f"{own}; only --against shows changes that kafka-configs.sh made live"))
    findings += [weak(told.text) if told.warns else note(told.text) for told in translation.notes]
    models: dict[str, type[BaseModel] | None] = {}  # the models of the plugins' settings, which tell what is secret
    for role, name in configured(settings) if with_plugins else ():
        try:
            entry = load(role, name)
            with suppress(TypeError):  # plugin_settings() finds this error, too
                models[name] = settings_model(entry)
            plugin_settings(role, name, settings, entry)
        except SettingsError as error:
            findings += [wrong(str(problem)) for problem in error.problems]
        except PluginError as error:
            findings.append(wrong(str(error)))
    rows = [  # the names without their prefix, which would break all names at 80 columns
        (row.property.removeprefix(PREFIX), row.value, translation.origins.get(row.property, row.where))
        for row in describe(settings, models if with_plugins else None)
    ]
    return Section("Settings", findings, (f"{PREFIX}*", "value", "from"), rows), settings


def _before_reading(broker: BrokerFile) -> Iterator[Finding]:
    name_of_class = broker.get(CALLBACK)
    # If a config provider supplies the class, its name can't be read here, so there is no finding.
    if name_of_class not in CLASSES and CALLBACK not in broker.unresolved:
        text = f"{CALLBACK} is {name_of_class or 'not set'}: this broker does not load quotahost"
        yield wrong(text, f"{CALLBACK}={CLASS}")
    for name in broker.unresolved:
        if name.startswith(PREFIX):
            yield note(f"{name} is not checked: a config provider of the broker resolves it")
    ours = {declaration.name for declaration in declared(Settings)}
    for name in broker.properties:
        almost_ours = name.startswith("plugin.") or "client.quota" in name.lower()
        if name in ours or (almost_ours and not name.startswith(PREFIX)):
            yield weak(f"{name} has no effect: names of quotahost begin with {PREFIX}", "correct the name")


def check_stored(admin: Admin, against: str, broker: BrokerFile, config: Mapping[str, str]) -> Iterator[Finding]:
    """Find values that a running cluster stores (``kafka-configs.sh``) and that override those of the broker's file.

    A finding has only names, and says which of them are unknown: Kafka hides the values of properties that Kafka
    doesn't know, and some values are secrets.
    """
    node = broker.get("node.id")
    if not node.isdecimal() or broker.get("process.roles") == "controller":
        return
    try:
        stored = BrokerConfig(admin, int(node), config).stored()
    except NoAnswer as problem:
        yield note(f"the stored values of broker {node} are not checked: {problem}")
        return
    # A hidden value may be equal to the file's value.
    others = [name for name, value in sorted(stored.items()) if value is None or value != broker.get(name)]
    names = {name: "" for name in others if name in broker.properties or name.startswith(PREFIX)}
    alter = f"kafka-configs.sh --bootstrap-server {against} --alter --entity-type brokers"
    which = f"{alter} --entity-name {node}, or --entity-default, --delete-config"
    try:
        read_properties(names)
    except SettingsError as error:  # Kafka asks quotahost only about names that it declares, and stores any other name
        # Names of plugins' properties are not judged: the list of plugins may be stored, too, and is then hidden.
        for stray in (problem for problem in error.problems if problem.unknown and problem.property in names):
            del names[stray.property]
            yield weak(f"broker {node} has stored a property that has no effect: {stray}", f"{which} {stray.property}")
    if names:
        text = f"broker {node} has stored values that override this file's: {', '.join(names)}"
        yield note(text, f"{which} NAME restores the file's value")
    else:
        yield good(f"broker {node} has no stored value of a property that is in this file")


# ---- weaknesses ------------------------------------------------------------------------------------------------


def check_weaknesses(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    listeners = Listeners(broker.properties)
    yield from _listeners(settings, broker, listeners)
    yield from _login(settings, broker, listeners)
    yield from _quotas(settings, broker)
    yield from check_protection(settings, broker)
    yield from check_rights(settings, broker)
    yield from _windows(broker)


def _listeners(settings: Settings, broker: BrokerFile, listeners: Listeners) -> Iterator[Finding]:
    is_open = "" if "listeners" in broker.unresolved else ", ".join(listeners.unauthenticated())
    if is_open and _ANONYMOUS in settings.excluded_principals:
        text = f"{_ANONYMOUS} is excluded, which means everybody on {is_open}: nobody there is throttled"
        yield weak(text, f"take {_ANONYMOUS} out of {_EXCLUDED}")
    elif is_open and listeners.authentication(listeners.inter_broker) == "none":
        text = f"nobody authenticates on {is_open}: brokers and plugins are recognized by their client-ids alone"
        yield weak(f"{text}, which anyone can claim", "SASL or mutual TLS, between the brokers, too")
    address, port = settings.metrics_endpoint or ("localhost", None)
    if not _is_loopback(address):
        text = f"metrics are served on {address}, not on loopback, to anyone who can connect"
        yield weak(text, f"{PREFIX}metrics.port without an address, or a firewall")
    if any(entry.strip().endswith(f":{port}") for entry in broker.get("listeners", "PLAINTEXT://:9092").split(",")):
        text = f"metrics.port is {port}, which listeners has, too: on one address Kafka can't listen then, and ends"
        yield weak(text, f"another port in {PREFIX}metrics.port")


def _login(settings: Settings, broker: BrokerFile, listeners: Listeners) -> Iterator[Finding]:
    """Whether the plugins' Kafka client, if there is one, can log in, and whether the brokers' principal is known."""
    if any("sasl." in name for name in broker.unresolved):
        return
    follows = {*SNAPSHOT_READERS, "cluster-quota"} & {*settings.factor_sources, *settings.supplier}
    config = client_config(settings, broker.properties, lambda ssl: {})
    config.pop("bootstrap.servers", None)  # without an address, nothing connects
    try:
        if follows or settings.tasks:
            unconnected(config, log_level=0)  # librdkafka would write to stderr that it has no address
    except NoAnswer as problem:
        how = f"{PREFIX}kafka.* says" if settings.kafka else "this broker does"
        text = f"the plugins' Kafka client can't log in as {how}: {problem}"
        yield wrong(text, f"a login of its own, {PREFIX}kafka.* (docs/security.md)")
    listener = listeners.inter_broker
    unknown = principal_at(listeners, listener, lambda ssl: {"principal": "some"}) is None
    if unknown and not settings.excluded_principals:
        text = f"the principal of brokers at listener {listener} is in no property"
        yield weak(f"{text}: brokers may be throttled", f"{_EXCLUDED}=User:NAME, as authorizers name it")
    by_certificate = listeners.protocol(listener) == "SSL" and listeners.authentication(listener) != "none"
    if by_certificate and settings.tasks and not (unknown or settings.kafka or settings.excluded_principals):
        text = f"if brokers' certificates at listener {listener} have different subjects, each knows only its own"
        yield note(f"{text}: the records of the others may be delayed", f"{_EXCLUDED} with the principals of all")


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _quotas(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    if settings.clients_idle < _SENSORS_LIVE:
        text = "clients.idle is below the hour that Kafka keeps sensors: a client forgotten early gets a fresh quota"
        yield weak(text, f"{PREFIX}clients.idle=1h")
    if unlimited := [name.replace("_", "-") for name, rate in settings.newcomers if rate is None]:
        text = f"newcomers are unlimited ({', '.join(unlimited)})"
        yield weak(f"{text}: a client that changes its name all the time has no quota", "set rates")
    has_rates = bool(settings.static.quotas)
    if has_rates and "static" not in settings.supplier:
        yield weak("static.* rates are set, but the supplier static is not named", f"add static to {PREFIX}supplier")
    if not has_rates and settings.supplier == ("static",):
        text = "the only supplier is static, and it has no rates: nobody is throttled"
        yield weak(text, f"set {PREFIX}static.produce")
    if settings.shadow.everything:
        yield weak("shadow is all: nothing is enforced", f"{PREFIX}shadow without all")
    elif rules := settings.shadow.names():
        yield weak(f"in shadow, and so not enforced: {', '.join(rules)}", f"take them out of {PREFIX}shadow")
    topics = settings.topics
    if topics.total is not None and not broker.has_fence:
        text = "topics.* are set, but the broker's authorizer is not the fence: no producer is turned back"
        yield weak(text, f"{AUTHORIZER}={FENCES[0]}")
    if topics.total is not None and topics.wanted >= topics.total:
        text = "the topics' thresholds use up the total: above it, topics without a threshold take nothing in"
        yield weak(text, f"a higher {PREFIX}topics.total.bytes.in.per.sec.threshold")
    if "JmxReporter" not in (reporters := broker.properties.get("metric.reporters", "JmxReporter")):
        text = f"metric.reporters={reporters}: without Kafka's own reporter, top, usage and shadow may know no rates"
        own = "org.apache.kafka.common.metrics.JmxReporter"
        remedy = f"add {own}, unless one of these shows Kafka's metrics by JMX, too"
        yield weak(f"{text}, and for clients without a quota a factor uses newcomers' rates", remedy)


def _windows(broker: BrokerFile) -> Iterator[Finding]:
    """Find windows that make a long burst and then a long silence.

    Kafka compares a quota with the mean over its windows. A client that sends as fast as it can gets the bytes of all
    windows in the first one, and then next to nothing until Kafka forgets that window. Kafka's own quotas do the same.
    """
    if broker.get("process.roles") == "controller":
        return
    try:
        windows = quota_windows(broker.properties)
    except ValueError:
        return  # Kafka itself refuses this value
    seconds = windows.number * windows.size
    if seconds > 2:  # the burst of 2 windows of 1 s is too short to notice
        text = (
            f"quotas are measured over {windows.number} windows of {windows.size} s: an eager client gets {seconds} s"
        )
        remedy = "quota.window.num=2" + ("" if windows.size == 1 else " and quota.window.size.seconds=1")
        yield weak(f"{text} of its quota at once, and then next to nothing for {seconds - windows.size} s", remedy)


# ---- whether a factor can protect the disks --------------------------------------------------------------------

#: Properties of StandardAuthorizer: a file that sets one belongs to a cluster with ACLs.
_OF_ACLS: Final = ("super.users", OPEN)
_SESSION: Final = "broker.session.timeout.ms"
_SESSION_MS: Final = 9000  # Kafka's default of broker.session.timeout.ms (KRaftConfigs)
_MESSAGE_MAX: Final = 1_048_588  # Kafka's default of message.max.bytes (ServerLogConfigs)
#: Properties that show a cluster of several nodes, if the value is a number above 1 or a list.
_OF_SEVERAL: Final = (
    "controller.quorum.voters", "controller.quorum.bootstrap.servers", "default.replication.factor",
    "offsets.topic.replication.factor", "min.insync.replicas",
)  # fmt: skip
#: The factor sources that read this broker's file stores, so that static.storage.overrides apply.
_LOOK_AT_DISKS: Final = ("local", *SNAPSHOT_READERS)
#: The factor sources that know volumes, but not which topics have a replica on them.
_WITHOUT_TOPICS: Final = ("log-dirs", "prometheus", "fixed")


def check_protection(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    roles = broker.get("process.roles")
    disk_sources = [name for name in settings.factor_sources if name in (*_LOOK_AT_DISKS, *_WITHOUT_TOPICS)]
    if len(disk_sources) > 1:
        text = f"factor.source names {' and '.join(disk_sources)}, which all say how full the disks are"
        yield wrong(text, "name one of them, beside sources for single quota types such as load")
    if broker.has_fence:
        yield from _behind_the_fence(settings, broker)
        # A controller's fence always stays open: Kafka creates the authorizer there, too, but no client produces there.
        if settings.factor_source is None and settings.topics.total is None and roles != "controller":
            text = "the fence is installed, but without a factor source or topic quotas it never has a reason to close"
            yield weak(text, f"set {PREFIX}factor.source, or take the fence out of {AUTHORIZER}")
    yield from _scope(settings, broker)
    if settings.factor_source is None:
        if settings.policy is not None:
            yield weak("a policy is named, but no factor.source gives it volumes", f"set {PREFIX}factor.source")
        return
    if QuotaType.PRODUCE not in settings.factor_quota_types:
        text = "factor.quota.types has no PRODUCE: however full the disks are, no producer is slowed or turned back"
        yield weak(text, f"add PRODUCE to {PREFIX}factor.quota.types")
    if not broker.has_fence:
        authorizer = broker.get(AUTHORIZER)
        yield weak(
            f"a factor source is set, but {AUTHORIZER} is {authorizer or 'not set'}, so there is no fence: PAUSE only "
            f"slows each producer to floor.bytes ({show_number(settings.floor_bytes)} bytes/s), and a producer that "
            "opens new connections escapes even that",
            f"{AUTHORIZER}={FENCES[0]} and {INNER}={authorizer or 'none'}, on brokers and controllers",
        )
    # If controllers are separate nodes, only the controllers can refuse new topics.
    elif settings.pause_creation == "refuse" and (
        roles == "broker" or (roles == "controller" and not judges_alone(settings))
    ):
        text = "in a PAUSE topics and partitions are still created, unless each controller has the fence,"
        text += f" {PREFIX}factor.source={' or '.join(SNAPSHOT_READERS)}, and the brokers' address and credentials in"
        cordon = "the task cordon keeps new replicas off full volumes (Kafka 4.3 and newer)"
        yield note(f"{text} {PREFIX}static.kafka.admin.*; {cordon}")
    yield from _limits(settings, broker)
    yield from _other_brokers(settings, broker)
    if settings.static.storage.any_limit:
        yield from _volumes(settings, broker)


def _behind_the_fence(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    if settings.fence_authorizer in FENCES:
        yield wrong(f"{INNER} is the fence itself", f"{INNER}=none, or the class of the cluster's own authorizer")
    acls = [name for name in _OF_ACLS if broker.get(name)]
    if settings.fence_authorizer == STANDARD and not acls:
        text = "behind the fence, StandardAuthorizer denies what no ACL allows, also to brokers"
        remedy = f"{INNER}=none if the cluster has no authorizer"
        yield weak(f"{text}; neither {' nor '.join(_OF_ACLS)} is set", remedy)
    if settings.fence_authorizer == "none" and acls:
        text = f"fence.authorizer is none, but {' and '.join(acls)} is set, as if ACLs were in use"
        remedy = f"{INNER}={STANDARD}, or remove {' and '.join(acls)}"
        yield weak(f"{text}: behind this fence nobody's rights are checked", remedy)


def _scope(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    """Why a factor is for all clients although ``factor.scope`` is topics, and why budgets slow no client."""
    by_topic = {"budgets is on": settings.budgets == "on", "factor.scope is topics": settings.factor_scope == "topics"}
    for what in (what for what, is_set in by_topic.items() if is_set and not broker.has_fence):
        text = f"{what}, but {AUTHORIZER} is not the fence, which alone sees who writes to which topic"
        yield weak(f"{text}: budgets slow nobody, and a factor is for all clients", f"{AUTHORIZER}={FENCES[0]}")
    if settings.factor_scope == "topics" and settings.factor_source in _WITHOUT_TOPICS:
        text = f"factor.scope is topics, but the factor source {settings.factor_source} doesn't know which topics a"
        remedy = f"{PREFIX}factor.source=snapshots, or cluster-volumes, or local"
        yield weak(f"{text} volume has: a factor is for all clients", remedy)


def _limits(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    """Whether fallback, hard limits and floor protect less than they seem to, or mute a producer for too long."""
    if settings.fallback_action is State.OPEN:
        text = "fallback.action is OPEN: when nothing is known of the disks, they are not protected"
        yield weak(text, f"{PREFIX}fallback.action=PAUSE")
    hard = [settings.static.storage.hard_limit, *(override.hard for override in settings.static.storage.overrides)]
    if any(limit and limit.type is not LimitType.CONSUMED_BYTES and limit.level == 0 for limit in hard):
        text = "a hard limit leaves nothing free: Kafka takes a log directory offline as soon as an append to it fails"
        remedy = f"{PREFIX}static.storage.hard.min-free-bytes=5G instead, or as much in the volume's own entry"
        yield weak(text, remedy)
    if settings.validity <= 2 * settings.factor_interval:
        text = "validity is not above twice factor.interval: after one late read the fallback is in force"
        yield weak(text, f"a longer {PREFIX}validity")
    # If one batch at the floor takes longer than max.mute, Kafka mutes its producer for longer than max.mute.
    largest, floor = _number(broker, "message.max.bytes", _MESSAGE_MAX), settings.floor_bytes
    mute = settings.max_mute.total_seconds()
    if floor * mute < largest:
        yield weak(
            f"one record batch of message.max.bytes ({largest:,}) at floor.bytes ({show_number(floor)} bytes/s) mutes "
            f"its producer for {largest / floor:,.0f} s, longer than max.mute ({show_duration(settings.max_mute)})",
            f"{PREFIX}floor.bytes={math.ceil(largest / mute)}, or a longer {PREFIX}max.mute",
        )


def _other_brokers(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    """Whether this broker sees other brokers' disks, and Kafka fences a dead broker before it counts as silent."""
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
        text = "the task publish-volumes is not named: other brokers don't learn how full this broker's disks are"
        yield weak(f"factor.source is {source}, but {text}", f"add publish-volumes to {PREFIX}tasks")
    session = timedelta(milliseconds=_number(broker, _SESSION, _SESSION_MS))
    # If the active controller dies, the next controller waits for one more session before it fences that broker.
    least = 2 * session + settings.snapshots_period
    if settings.validity < least and settings.fenced_brokers != "unknown":
        yield weak(
            f"validity ({show_duration(settings.validity)}) is shorter than the time that Kafka may need to fence a "
            f"dead broker ({_SESSION} is {show_duration(session)}, and twice that if it was the active controller): "
            "until then all producers are stopped",
            f"{PREFIX}validity={math.ceil(least.total_seconds())}s, or a shorter {_SESSION}",
        )


def _number(broker: BrokerFile, name: str, default: int) -> int:
    text = broker.get(name)
    return int(text) if text.isdecimal() and len(text) <= 10 else default  # Kafka itself refuses other values


def _volumes(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    """Find overrides that match no volume, and limits that are already reached on this machine's file stores."""
    overrides = settings.static.storage.overrides
    if overrides and settings.factor_source not in _LOOK_AT_DISKS and "publish-volumes" not in settings.tasks:
        text = f"static.storage.overrides apply to no volume: the factor source {settings.factor_source}"
        yield weak(f"{text} doesn't look at this broker's disks", f"{PREFIX}factor.source=local or snapshots")
    here = [name for name in log_dirs(broker.properties) if os.path.exists(name)]  # noqa: PTH110 - Path.exists() raises if access is denied
    # A controller has no log directories of clients' topics. On another machine the broker's paths may not exist.
    if not here or broker.get("process.roles") == "controller":
        return
    disks = read_disks(broker.get("node.id"), here)
    volumes = {volume.name: volume for volume in disks.volumes}
    # A directory that doesn't exist here gets "" as its volume, so that its override doesn't count as unmatched.
    places = dict.fromkeys(log_dirs(broker.properties), "") | dict(disks.places)
    matched = match(overrides, list(volumes), places)
    for name in matched.unmatched:
        text = f"{printable(name)} is no volume or log directory of this broker, so the entry has no effect"
        yield weak(f"static.storage.overrides: {text}", f"name one of {', '.join([*places, *volumes])}")
    for text in matched.conflicts:
        yield weak(f"static.storage.overrides: {text}", "write the limits of a volume in one entry")
    for volume in disks.volumes:
        soft, hard = matched.limits.get(volume.name, (None, None))
        hard = hard or settings.static.storage.hard_limit
        limits = byte_limits(volume, soft or settings.static.storage.soft_limit, hard)
        if limits is None or volume.consumed < limits.hard:
            continue
        what = f"its hard limit {hard} is reached at {limits.hard:,}" if hard else "it is full"
        text = f"volume {printable(volume.name)}: {volume.consumed:,} of {volume.capacity:,} bytes are used, and {what}"
        remedy = f"free space, or another limit in {PREFIX}static.storage.*"
        yield weak(f"{text}: the broker would start in PAUSE", remedy)
