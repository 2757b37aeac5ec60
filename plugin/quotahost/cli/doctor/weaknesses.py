"""Checks for settings that are allowed and work, but exempt somebody or protect less than they seem to.

All findings of this module are ``weak``, none is ``wrong``: the broker starts with these settings. Checks that concern
the disks alone are in ``protection``.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from quotahost.cli.broker_file import BrokerFile
from quotahost.cli.console import Finding, weak
from quotahost.cli.doctor.protection import AUTHORIZER, FENCES, check_protection
from quotahost.cli.doctor.rights import check_rights
from quotahost.cli.doctor.scope import check_scope
from quotahost.cli.doctor.tiering import check_tiering
from quotahost.cli.doctor.windows import check_windows
from quotahost.kafka.listeners import Listeners
from quotahost.model import LimitType, State
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX

_SENSORS_LIVE: Final = timedelta(hours=1)  # Kafka's ClientQuotaManager.InactiveSensorExpirationTimeSeconds
_ANONYMOUS: Final = "ANONYMOUS"  # Kafka's name of a principal that did not authenticate
_EXCLUDED: Final = f"{PREFIX}static.excluded.principal.name.list"


def check_weaknesses(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    """All weaknesses of these settings in this broker, each with its remedy."""
    yield from _listeners(settings, broker)
    yield from _idle_clients(settings)
    yield from _quotas(settings)
    yield from _disks(settings)
    yield from check_protection(settings, broker)
    yield from check_scope(settings, broker)
    yield from check_rights(settings, broker)
    yield from _topics(settings, broker)
    yield from check_tiering(settings, broker)
    yield from check_windows(broker)


def _listeners(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    listeners = ", ".join(Listeners(broker.properties).unauthenticated())
    if listeners and _ANONYMOUS in settings.excluded_principals:
        yield weak(
            f"{_ANONYMOUS} is excluded, and so is everybody on {listeners}: nobody there is throttled",
            f"take {_ANONYMOUS} out of {_EXCLUDED}",
        )
    elif listeners and not settings.excluded_principals:
        yield weak(
            f"nobody authenticates on {listeners}, and no principal is excluded: there the brokers and the "
            "plugins' own client are recognized by their client-ids alone, which anyone can claim",
            f"use SASL or mutual TLS, and list the brokers' principals in {_EXCLUDED}",
        )
    if settings.metrics_port is not None and not _is_loopback(settings.metrics_address):
        yield weak(
            f"metrics are served on {settings.metrics_address}, not on loopback, to anyone who can connect",
            f"{PREFIX}metrics.address=127.0.0.1, or a firewall",
        )


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _idle_clients(settings: Settings) -> Iterator[Finding]:
    if settings.clients_idle < _SENSORS_LIVE:
        yield weak(
            "clients.idle is below the hour that Kafka keeps a client's sensors: a throttled client whose "
            "place is given away early starts again with a fresh quota",
            f"{PREFIX}clients.idle=1h",
        )


def _quotas(settings: Settings) -> Iterator[Finding]:
    newcomers = settings.newcomers
    unlimited = [name for name in type(newcomers).model_fields if getattr(newcomers, name) is None]
    if unlimited:
        names = ", ".join(name.replace("_", "-") for name in unlimited)
        yield weak(
            f"newcomers are unlimited ({names}): a client that changes its name all the time has no quota", "set rates"
        )
    static = settings.static
    rates = (static.produce, static.fetch, static.request, static.controller_mutation)
    has_rates = any(rate is not None for rate in rates)
    if has_rates and "static" not in settings.supplier:
        yield weak("static.* rates are set, but the supplier static is not named", f"add static to {PREFIX}supplier")
    if not has_rates and settings.supplier == ("static",):
        yield weak(
            "the only supplier is static, and it has no rates: nobody is throttled", f"set {PREFIX}static.produce"
        )
    if settings.mode == "shadow":
        yield weak("mode is shadow: nothing is enforced", f"{PREFIX}mode=enforce")
    elif rules := settings.in_shadow.names():
        yield weak(f"in shadow, and so not enforced: {', '.join(rules)}", f"take them out of {PREFIX}shadow")


def _disks(settings: Settings) -> Iterator[Finding]:
    if settings.factor_source is None:
        if settings.policy is not None:
            yield weak("a policy is named, but no factor.source that it could judge", f"set {PREFIX}factor.source")
        return
    if settings.fallback_action is State.OPEN:
        yield weak(
            "fallback.action is OPEN: when nothing is known of the disks, they are not protected",
            f"{PREFIX}fallback.action=PAUSE",
        )
    hard = [settings.storage_hard, *(each.hard for each in settings.static.storage.overrides)]
    if any(limit and limit.type is not LimitType.CONSUMED_BYTES and limit.level == 0 for limit in hard):
        yield weak(
            "a hard limit leaves nothing free: Kafka takes a log directory offline as soon as an append to it fails",
            f"{PREFIX}static.storage.hard.min-free-bytes=5G, alone, or as much in the volume's own entry",
        )
    if settings.validity <= 2 * settings.factor_interval:
        yield weak(
            "validity is not above twice factor.interval: one late read, and the fallback is in force",
            f"a longer {PREFIX}validity",
        )


def _topics(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    topics = settings.topics
    if topics.total is None:
        return
    if broker.get(AUTHORIZER) not in FENCES:
        yield weak(
            "topics.* are set, but the broker's authorizer is not the fence: no producer is turned back",
            f"{AUTHORIZER}={FENCES[0]}",
        )
    # Added up as the settings do it (TopicSettings).
    if math.fsum(rate for _, rate in topics.thresholds) >= topics.total:
        yield weak(
            "the topics' thresholds use up the total: while the broker is over it, topics without a threshold of "
            "their own take nothing in",
            f"a higher {PREFIX}topics.total.bytes.in.per.sec.threshold",
        )
