"""What the broker does with a factor, and what it does while it has none that it may trust."""

from __future__ import annotations

from typing import Any

from quotahost.model import State
from quotahost.settings.declaration import Frozen, declare
from quotahost.settings.shadow import Shadowed
from quotahost.settings.types import Action, Creation, FactorScope, Mode, Part, QuotaTypes, Text
from quotahost.units import BytesPerSecond, Duration


def _fallback(fields: dict[str, Any]) -> str:
    """PAUSE only where a factor source exists: without one nothing about disks is unknown."""
    return State.PAUSE if fields.get("factor_source") else State.OPEN


class EnforcementSettings(Frozen):
    """The fallback and the times until it applies, the bounds of a factor's effect, the fence, and the mode."""

    fallback_action: Action = declare(
        "fallback.action", default=_fallback, words="PAUSE with a factor.source, else OPEN"
    )
    """What applies while the state is unknown or the host does not answer. Without a factor source nothing about
    disks is unknown, so OPEN: the quotas that the broker remembers stay in force."""
    validity: Duration = declare("validity", default="1m")
    """How old the host's last sign of life, and the newest state of the disks, may be before `fallback.action`
    applies."""
    startup_grace: Duration = declare("startup.grace", default="1m")
    """How long after its start a broker waits for the first state of the disks."""
    start_timeout: Duration = declare("start.timeout", default="30s", live=False)
    """How long the start of the broker waits for the plugins."""
    # 35K: a batch of 1 MiB, Kafka's default of message.max.bytes, then delays its producer for 30 s,
    # the default of max.mute. Strimzi's limit of 1 byte/s muted producers for hours.
    floor_bytes: BytesPerSecond = declare("floor.bytes", default="35K")
    """Byte rate that no factor takes a quota below: there Kafka's throttle times grow to hours, which no later change
    takes back. A quota that is itself lower stays as it was set."""
    max_mute: Duration = declare("max.mute", default="30s")
    """The longest throttle time that one step of the factor downwards may cause; quotahost reaches a lower factor in
    several steps, one each quota window."""
    pause_resume_free_share: Part = declare("pause.resume.free-share", default="0.1")
    """How much of the way from a volume's hard limit back to its soft one must be free before its PAUSE ends, 0.0 to
    1.0. At 0.0 a PAUSE ends with the first byte below the hard limit. A volume without a soft limit lets go over a
    twentieth of its hard one."""
    factor_quota_types: QuotaTypes = declare("factor.quota.types", default="PRODUCE")
    """Quota types that the factor multiplies."""
    factor_scope: FactorScope = declare("factor.scope", default="cluster")
    """Whom a factor of volumes is for: `cluster`, all clients, as proposal 035 says; or `topics`, only clients that
    write to topics with a replica on a volume above its soft limit. `topics` needs the fence, which sees who writes
    where; without it, and where a source doesn't know the topics, all clients are slowed."""
    # By default ACLs stay in force where there are some; behind `none` everybody may do everything.
    fence_authorizer: Text = declare(
        "fence.authorizer", default="org.apache.kafka.metadata.authorizer.StandardAuthorizer", live=False
    )
    """The authorizer behind `authorizer.class.name=org.quotahost.QuotaFence`: `none` for a cluster that had no
    authorizer, or the class that it had. The fence itself reads it."""
    pause_creation: Creation = declare("pause.creation", default="refuse")
    """Whether topics and partitions may be created in a PAUSE: `refuse` answers with POLICY_VIOLATION all but those who
    pass the fence, while a volume is known to be at its hard limit, or `allow`. The authorizer of controllers has to be
    the fence, and they have to know the factor: a node that is broker and controller does, and any other with
    `static.kafka.admin.bootstrap.servers`."""
    mode: Mode = declare("mode", default="enforce")
    """`enforce`, or `shadow`: quotahost computes and shows everything, and enforces nothing."""
    shadow: Shadowed = declare("shadow", default="")
    """Single rules that quotahost computes and shows and doesn't enforce, while it enforces the others:
    `supplier.NAME` (the suppliers behind it answer instead), `factor` (with the fence), `topics` (all thresholds of
    topics) or `topic.NAME` (one topic's). With `mode=shadow` all of them are."""
