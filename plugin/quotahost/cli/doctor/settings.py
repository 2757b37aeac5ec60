"""Checks a broker's properties: that quotahost and the plugins understand them, and what they leave weak.

1. :func:`check_settings` reads them as the broker does. Its section's table lists every property as understood, with
   full units and without secrets.
2. :func:`check_weaknesses` looks for what is allowed and works, but exempts somebody or protects less than it seems to:
   listeners, quotas and their windows, topic quotas, tiered storage here; the disks in ``protection``, rights to topics
   in ``topics``. All these findings are ``weak`` or notes, none is ``wrong``: the broker starts with these settings.
"""

import ipaddress
import math
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Final

from pydantic import BaseModel

from quotahost.broker.discovery import PluginError, configured, load, plugin_settings, settings_model
from quotahost.cli.console import Finding, Section, good, note, weak, wrong
from quotahost.cli.doctor.protection import check_protection
from quotahost.cli.doctor.topics import check_rights
from quotahost.cli.property_files import AUTHORIZER, CLASS, CLASSES, FENCES, BrokerFile
from quotahost.kafka.listeners import Listeners, login_name
from quotahost.settings.broker import Settings, describe, read_properties
from quotahost.settings.declaration import PREFIX, SettingsError
from quotahost.text import printable
from quotahost.throttling import quota_windows

_COLUMNS: Final = ("property", "value", "from")
_CLASS: Final = f"{PREFIX}class"
_SENSORS_LIVE: Final = timedelta(hours=1)  # Kafka's ClientQuotaManager.InactiveSensorExpirationTimeSeconds
_ANONYMOUS: Final = "ANONYMOUS"  # Kafka's name of a principal that did not authenticate
_EXCLUDED: Final = f"{PREFIX}static.excluded.principal.name.list"
#: Seconds of all quota windows, up to which nobody notices the burst: 2 windows of 1 s.
_EVEN: Final = 2

# ---- how they are read -----------------------------------------------------------------------------------------


def check_settings(broker: BrokerFile, with_plugins: bool) -> tuple[Section, Settings | None]:
    """Read the properties as the broker does; ``with_plugins``, they check theirs. The settings are None if wrong."""
    findings = list(_before_reading(broker))
    try:
        settings, translation = read_properties(broker.properties)
    except SettingsError as error:
        return Section("Settings", [*findings, *(wrong(str(problem)) for problem in error.problems)]), None
    findings.append(good(f"{broker.path} is understood; changes made live by kafka-configs.sh are not seen here"))
    findings += [weak(told.text) if told.warns else note(told.text) for told in translation.notes]
    models: dict[str, type[BaseModel] | None] = {}  # of the plugins' own settings, which tell secrets from the rest
    for role, name in configured(settings) if with_plugins else ():
        try:
            plugin_settings(role, name, settings)
        except SettingsError as error:
            findings += [wrong(str(problem)) for problem in error.problems]
        except PluginError as error:
            findings.append(wrong(str(error)))
        with suppress(PluginError, TypeError):  # it is among the findings
            models[name] = settings_model(load(role, name))
    rows = [
        (row.property, row.value, translation.origins.get(row.property, row.where))
        for row in describe(settings, models if with_plugins else None)
    ]
    return Section("Settings", findings, _COLUMNS, rows), settings


def _before_reading(broker: BrokerFile) -> Iterator[Finding]:
    name_of_class = broker.get(_CLASS)
    # A class that a config provider supplies can't be read here, so nothing is said of it.
    if name_of_class not in CLASSES and _CLASS not in broker.unresolved:
        text = f"{_CLASS} is {name_of_class or 'not set'}: this broker does not load quotahost"
        yield wrong(text, f"{_CLASS}={CLASS}")
    for name in broker.unresolved:
        if name.startswith(PREFIX):
            yield note(f"{name} is not checked: a config provider of the broker resolves it")


# ---- what is weak ----------------------------------------------------------------------------------------------


def check_weaknesses(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    yield from _listeners(settings, broker)
    yield from _quotas(settings)
    yield from check_protection(settings, broker)
    yield from check_rights(settings, broker)
    yield from _topics(settings, broker)
    yield from _tiering(settings, broker)
    yield from _windows(broker)


def _listeners(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    listeners = Listeners(broker.properties)
    is_open = "" if "listeners" in broker.unresolved else ", ".join(listeners.unauthenticated())
    if is_open and _ANONYMOUS in settings.excluded_principals:
        text = f"{_ANONYMOUS} is excluded, and so is everybody on {is_open}: nobody there is throttled"
        yield weak(text, f"take {_ANONYMOUS} out of {_EXCLUDED}")
    elif is_open and not settings.excluded_principals and not listeners.knows_nodes(listeners.inter_broker):
        text = f"nobody authenticates on {is_open}, and no principal is excluded: brokers and plugins are recognized"
        remedy = f"use SASL or mutual TLS, and list the brokers' principals in {_EXCLUDED}"
        yield weak(f"{text} by their client-ids alone, which anyone can claim", remedy)
    if settings.metrics_endpoint and not _is_loopback(settings.metrics_endpoint[0]):
        text = f"metrics are served on {settings.metrics_endpoint[0]}, not on loopback, to anyone who can connect"
        yield weak(text, f"{PREFIX}metrics.port without an address, or a firewall")


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _quotas(settings: Settings) -> Iterator[Finding]:
    if settings.clients_idle < _SENSORS_LIVE:
        text = "clients.idle is below the hour that Kafka keeps sensors: who is forgotten early has a fresh quota"
        yield weak(text, f"{PREFIX}clients.idle=1h")
    if unlimited := [name.replace("_", "-") for name, rate in settings.newcomers if rate is None]:
        text = f"newcomers are unlimited ({', '.join(unlimited)})"
        yield weak(f"{text}: a client that changes its name all the time has no quota", "set rates")
    static = settings.static
    rates = (static.produce, static.fetch, static.request, static.controller_mutation)
    has_rates = any(rate is not None for rate in rates)
    if has_rates and "static" not in settings.supplier:
        yield weak("static.* rates are set, but the supplier static is not named", f"add static to {PREFIX}supplier")
    if not has_rates and settings.supplier == ("static",):
        text = "the only supplier is static, and it has no rates: nobody is throttled"
        yield weak(text, f"set {PREFIX}static.produce")
    if settings.shadow.everything:
        yield weak("shadow is all: nothing is enforced", f"{PREFIX}shadow without all")
    elif rules := settings.shadow.names():
        yield weak(f"in shadow, and so not enforced: {', '.join(rules)}", f"take them out of {PREFIX}shadow")


def _topics(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    topics = settings.topics
    if topics.total is None:
        return
    if broker.get(AUTHORIZER) not in FENCES:
        text = "topics.* are set, but the broker's authorizer is not the fence: no producer is turned back"
        yield weak(text, f"{AUTHORIZER}={FENCES[0]}")
    # Added up as the settings do it (TopicSettings).
    if math.fsum(rate for _, rate in topics.thresholds) >= topics.total:
        text = "the topics' thresholds use up the total: over it, topics without a threshold take nothing in"
        yield weak(text, f"a higher {PREFIX}topics.total.bytes.in.per.sec.threshold")


def _tiering(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    """Whether the client of ``__remote_log_metadata`` is exempt from quotas, and as whom it connects.

    Tiered storage writes down there what was offloaded. The fence lets those writes pass whoever sends them. But a
    client that is not exempt has a quota, which a factor multiplies; in a PAUSE without the fence that is the floor.
    Then segments are offloaded slowly, when it matters most.
    """
    if broker.get("remote.log.storage.system.enable").lower() != "true":
        return
    # Its own properties are those of RemoteLogManager and TopicBasedRemoteLogMetadataManagerConfig.
    prefix = f"{broker.get('remote.log.metadata.manager.impl.prefix') or 'rlmm.config.'}remote.log.metadata."

    def get(name: str) -> str:
        return broker.get(f"{prefix}producer.{name}") or broker.get(f"{prefix}common.client.{name}")

    client = "tiered storage's client for __remote_log_metadata"
    slow = "is not exempt: its quota, and in a PAUSE without the fence the floor, slows offloading down"
    listeners, of_client = Listeners(broker.properties), "remote.log.metadata.manager.listener.name"
    between, listener, protocol = listeners.inter_broker, broker.get(of_client), get("security.protocol").upper()
    is_anonymous = protocol in ("", "PLAINTEXT")
    if listener and protocol in ("", "SSL"):
        is_anonymous = not listeners.authenticates(listener)
    # The user of SASL; None for a certificate's subject, and for what a file of Java's JAAS names.
    name = login_name(get("sasl.jaas.config"), get("sasl.mechanism") or "GSSAPI")
    brokers = listeners.login_name(between) if listeners.protocol(between).startswith("SASL") else None
    if is_anonymous:
        # Where brokers are anonymous, too, client-ids exempt both.
        if listeners.authenticates(between) and _ANONYMOUS not in settings.excluded_principals:
            text = f"{client} connects as {_ANONYMOUS}, while brokers authenticate to each other: it {slow}"
            yield weak(text, f"{of_client}={between}, with {prefix}common.client.sasl.* or ssl.* to log in as they do")
    elif name is None:
        text = f"the principal of {client} can't be found in this file: unless it is the brokers' own or listed, it"
        yield weak(f"{text} {slow}", f"make sure that {_EXCLUDED} lists it")
    elif name not in {*settings.excluded_principals, brokers}:
        text = f"{client} logs in as {printable(name)}, which {slow}"
        yield weak(text, f"add User:{printable(name)} to {_EXCLUDED}")


def _windows(broker: BrokerFile) -> Iterator[Finding]:
    """The burst and the silence that these windows make, if they are long.

    Kafka compares a quota with the mean over its windows, so a client that sends as fast as it can gets all windows'
    bytes in the first, and then next to nothing until that window is forgotten. So it is with Kafka's own quotas, too.
    """
    if broker.get("process.roles") == "controller":
        return
    try:
        windows = quota_windows(broker.properties)
    except ValueError:
        return  # Kafka itself refuses it
    seconds = windows.number * windows.size
    if seconds > _EVEN:
        text = (
            f"quotas are measured over {windows.number} windows of {windows.size} s: an eager client gets {seconds} s"
        )
        remedy = "quota.window.num=2" + ("" if windows.size == 1 else " and quota.window.size.seconds=1")
        yield weak(f"{text} of its quota at once, and then next to nothing for {seconds - windows.size} s", remedy)
