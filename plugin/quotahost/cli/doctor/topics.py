"""The doctor checks the rights to quotahost's topics and their configuration, in a file or a cluster (``--against``).

``quotahost.records.topics`` declares the topics, and which role needs which rights.

1. :func:`check_rights` finds out from a properties file whether the broker has an authorizer at all.
2. :func:`check_cluster` asks a running cluster (``quotahost doctor --against``), with or without credentials: which
   principals the ACLs allow, which rights the client has and lacks (``--as``), and how the topics are configured.

The doctor writes nothing to the cluster.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from quotahost.cli.console import Finding, good, note, weak, wrong
from quotahost.cli.property_files import AUTHORIZER, INNER, BrokerFile
from quotahost.kafka.client import OF_GROUPS, Admin, no_right
from quotahost.kafka.rights import CHANGES, Holders, Rights, Shape, ask
from quotahost.records import topics as kept
from quotahost.records.topics import LOOKS, QUOTAS, WATCH, AclRole, Topic
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from quotahost.settings.properties import SNAPSHOT_READERS

STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
OPEN: Final = "allow.everyone.if.no.acl.found"
LOCAL_ALONE: Final = (
    "factor.source is local, the default where limits are set: each broker slows its own producers by its own disks, "
    "and a follower's disk that fills stops nobody, so protection is not cluster-wide"
)
SEE_ALL: Final = f"{PREFIX}factor.source=snapshots and {PREFIX}tasks=publish-volumes on all brokers (docs/disks.md)"
_RECIPE: Final = "the rights of docs/security.md (conf/secured/acls.sh)"
_AUTHORIZER: Final = f"an authorizer ({STANDARD}) and {_RECIPE}"
_EVERYBODY: Final = "User:*"
#: Operations that change a topic or its records: only one role writes to a topic. Create changes nothing that exists.
_LIES: Final = CHANGES - {"Create"}
_DELETED: Final = (kept.REFUSED, kept.TICKS)  # these need no compaction: nobody reads their old records
_WRITTEN_BY: Final = {kept.SNAPSHOTS: "publish-volumes", kept.USAGE: "publish-usage", LOOKS: "publish-usage"}
#: For each topic, the factor sources that trust its records.
_BELIEVED_BY: Final = {kept.CLUSTER_VOLUMES: ("cluster-volumes",), kept.SNAPSHOTS: SNAPSHOT_READERS}
_LARGEST: Final = 1048588  # bytes; Kafka's default of max.message.bytes, which fits the default of producers


# ---- topics and needed rights ----------------------------------------------------------------------------------


def named(settings: Settings | None) -> dict[str, Topic]:
    """The topics by their names with the prefix of these settings; without settings, by their default names."""
    return {settings.named(topic) if settings else topic.name: topic for topic in kept.TOPICS}


def _is_believed(topic: Topic, settings: Settings) -> bool:
    if topic in (kept.USAGE, kept.SHARES, QUOTAS):
        return "cluster-quota" in settings.supplier or (topic is QUOTAS and settings.budgets == "on")
    return settings.factor_source in _BELIEVED_BY.get(topic, ())


def needed(settings: Settings | None, role: AclRole) -> dict[str, frozenset[str]]:
    """For each topic, Read and Write as the role needs them: plugins as these settings use them, or all if None."""
    needs: dict[str, frozenset[str]] = {}
    for name, topic in named(settings).items():
        operations = {"Read", "Write"} & set[str](topic.operations(role))
        if settings is not None and role is AclRole.PLUGINS:
            is_followed = topic in (WATCH, QUOTAS) and "publish-usage" in settings.tasks
            if not is_followed and not _is_believed(topic, settings):
                operations.discard("Read")
            if _WRITTEN_BY.get(topic) not in settings.tasks:
                operations.discard("Write")
        if operations:
            needs[name] = frozenset(operations)
    return needs


# ---- from a properties file ------------------------------------------------------------------------------------


def check_rights(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    """Find properties that let everybody write to topics that this broker trusts, or by which clients watch it."""
    authorizer, remedy = broker.get(AUTHORIZER), _AUTHORIZER
    if broker.get("process.roles") == "controller":
        return
    if broker.has_fence and settings.fence_authorizer == "none":
        may = f"{INNER} is none: everybody who can connect may"
    elif authorizer in ("", "none"):
        may = f"{AUTHORIZER} is not set: everybody who can connect may"
    elif broker.get(OPEN).lower() == "true":
        may, remedy = f"{OPEN} is true: where no ACL is set, everybody may", f"{OPEN}=false, or {_RECIPE}"
    else:
        return
    names = named(settings)
    if believed := ", ".join(name for name, topic in names.items() if _is_believed(topic, settings)):
        yield weak(f"{may} write to {believed}, and this broker decides by these records about all producers", remedy)
    if "publish-usage" in settings.tasks:
        watch, looks = map(settings.named, (WATCH, LOOKS))
        shows = "which makes the task publish-usage show the names and rates of all clients"
        yield weak(f"{may} write to {watch}, {shows}, and read them in {looks}", remedy)


# ---- from a running cluster ------------------------------------------------------------------------------------


def check_cluster(
    admin: Admin, against: str, config: Mapping[str, str], settings: Settings | None, role: AclRole | None = None
) -> Iterator[Finding]:
    """Check the rights to a running cluster's topics, and their configuration; arguments are as in ``ask_cluster``."""
    topics = named(settings)
    # The pipeline's consumers have no consumer group at the brokers.
    rights = ask(admin, tuple(topics), role not in (None, AclRole.PIPELINE))
    if settings and settings.factor_source == "local" and rights.brokers > 1:
        yield weak(f"{LOCAL_ALONE} ({against} has {rights.brokers} brokers)", SEE_ALL)
    if not config and "Alter" in rights.cluster:
        text = f"{against} lets a client without credentials do everything: there is no authorizer, or {OPEN} is true"
        yield weak(f"{text}; so everybody who can connect may write to {', '.join(topics)}", _AUTHORIZER)
    else:
        yield from _of_acls(rights, topics)
        if role is not None:
            yield from _of_role(rights, settings, role, config)
        else:
            # These credentials may be the brokers' or the pipeline's own, and then their rights are right.
            yield from _of_client(rights, topics, against, "these credentials" if config else "")
    yield from _of_shapes(rights, topics, role)


def _of_acls(rights: Rights, topics: Mapping[str, Topic]) -> Iterator[Finding]:
    if rights.acls is None:
        yield note("ACLs are not checked: this client may not look at them", "--client-config FILE of a super user")
        return
    names = {topic: name for name, topic in topics.items()}
    watchers = _holding("Write", rights.acls.get(names[WATCH], {}))
    for name, holders in rights.acls.items():
        yield from _of_holders(name, topics[name], holders, watchers)


def _holding(operation: str, holders: Holders) -> list[str]:
    """The principals that have this right, except everybody (``User:*``)."""
    return sorted(who for who, rights in holders.items() if who != _EVERYBODY and rights.keys() & {operation, "All"})


def _of_holders(name: str, topic: Topic, holders: Holders, watchers: Sequence[str]) -> Iterator[Finding]:
    """Find principals whose ACLs allow more than is needed. Super users need no ACL, and are not listed.

    One principal may write to a topic. Several may write to the watch topic, and only these may read the looks.
    """
    writers, is_watched = _holding("Write", holders), "Write" in topic.watchers

    def is_right(principal: str, operation: str) -> bool:
        looks = topic is LOOKS and operation in ("Read", "All") and principal not in watchers
        # Several watchers may write to the watch topic: each one writes a record to it.
        lies = operation in _LIES and not (operation == "Write" if is_watched else writers == [principal])
        return principal != _EVERYBODY and not looks and not lies

    excess = [
        f"{principal} may {operation} by the ACL for {' and '.join(resources)}"
        for principal, rights in sorted(holders.items())
        for operation, resources in sorted(rights.items())
        if not is_right(principal, operation)
    ]
    if excess:
        sees = ", and whoever reads it sees the names and rates of all clients" if topic is LOOKS else ""
        text = f"ACLs give too many rights to {name}: {'; '.join(excess)}. Whoever changes it {topic.danger}{sees}"
        yield weak(text, f"remove what is too much with kafka-acls.sh; {_RECIPE} are enough")
    elif writers:
        only, more = ("", ", and watch") if is_watched else ("only ", "")
        yield good(f"ACLs let {only}{', '.join(writers)} write to {name}{more}")


def _of_role(rights: Rights, settings: Settings | None, role: AclRole, config: Mapping[str, str]) -> Iterator[Finding]:
    lacking, needs = list(_lacking(rights, settings, role)), f"needed by the {role.value}"
    names = needed(settings, role)
    if absent := ", ".join(name for name in names if name in rights.missing):
        yield note(f"{absent}: Read and Write can only be checked once the topic exists")
    for right, what, of in lacking:
        yield wrong(f"these credentials may not {right} {what}, which is {needs}", no_right(right, of, config)[1])
    there = ", ".join(name for name in names if name not in rights.missing)
    if not lacking and there:
        yield good(f"these credentials have all that is {needs}: {there}")
    for name, topic in named(settings).items():
        dangerous = _LIES | {"Read"} if topic is LOOKS else _LIES  # a look shows the names and rates of all clients
        if beyond := (rights.own.get(name, frozenset()) & dangerous) - set(topic.operations(role)):
            yield weak(f"these credentials may also {', '.join(sorted(beyond))} {name}: more than is {needs}")


def _lacking(rights: Rights, settings: Settings | None, role: AclRole) -> Iterator[tuple[str, str, str]]:
    """Each missing right: the operation, the resource in words, and the resource as ``no_right`` takes it."""
    topics, needs = named(settings), needed(settings, role)
    for name, operations in needs.items():
        if name in rights.missing:
            if "Create" in topics[name].operations(role) and not rights.missing[name]:
                yield "Create", f"{name}, which doesn't exist", f"--topic {name}"
            continue
        for lacks in sorted(operations - rights.own.get(name, frozenset())):
            yield lacks, name, f"--topic {name}"
    if not rights.group and any("Read" in operations for operations in needs.values()):
        yield "Describe", f"groups {kept.GROUPS}*", OF_GROUPS
    if settings and role is AclRole.PLUGINS and "cordon" in settings.tasks:
        for lacks in sorted({"AlterConfigs", "DescribeConfigs"} - rights.cluster):
            yield lacks, "on the cluster for the task cordon", "--cluster"


def _of_client(rights: Rights, topics: Mapping[str, Topic], against: str, who: str) -> Iterator[Finding]:
    allowed = {topic: operations for topic, operations in rights.own.items() if operations}
    for topic, operations in allowed.items():
        what = f"may {', '.join(sorted(operations))} {topic}"
        danger = f": such a client {topics[topic].danger}" if operations & CHANGES else ""
        on = f"on {against} a client without credentials"
        yield note(f"{who} {what}") if who else weak(f"{on} {what}{danger}", _RECIPE)
    if not rights.own:
        yield note(f"{against} has none of quotahost's topics yet")
    elif not allowed:
        yield good(f"{who or 'a client without credentials'} has no right to quotahost's topics on {against}")


def _of_shapes(rights: Rights, topics: Mapping[str, Topic], role: AclRole | None) -> Iterator[Finding]:
    """Check the topics' configuration. A missing DescribeConfigs is reported only if the role needs that right."""
    asked = [name for name in rights.shapes if role is None or "DescribeConfigs" in topics[name].operations(role)]
    seen = {name: shape for name, shape in rights.shapes.items() if shape.config is not None}
    problems = [finding for name, shape in seen.items() for finding in _of_shape(name, topics[name], shape)]
    yield from problems
    if seen and not problems:
        yield good(f"replicas, compaction and size of records are right: {', '.join(seen)}")
    if unseen := ", ".join(name for name in asked if name not in seen):
        yield note(f"the configuration of {unseen} is not checked: DescribeConfigs is missing there")


def _of_shape(name: str, topic: Topic, shape: Shape) -> Iterator[Finding]:
    config, replicas, mend = shape.config or {}, shape.replicas, "kafka-configs.sh: "
    policy, clock = config.get("cleanup.policy", "compact"), config.get("message.timestamp.type", "LogAppendTime")
    largest, least = int(config.get("max.message.bytes", _LARGEST)), int(config.get("min.insync.replicas", 1))
    if topic not in _DELETED and "compact" not in policy:
        text = f"{name} has cleanup.policy={policy}: it loses the records of silent brokers"
        yield wrong(text, f"{mend}cleanup.policy=compact")
    if clock != "LogAppendTime":
        text = f"{name} has message.timestamp.type={clock}: ages then follow the clocks of its writers"
        yield weak(text, f"{mend}message.timestamp.type=LogAppendTime")
    if largest < _LARGEST:
        text = f"{name} has max.message.bytes={largest}: the records of a large cluster may not fit"
        yield weak(text, f"{mend}max.message.bytes={_LARGEST}")
    if least > replicas:
        text = f"{name} has {replicas} replicas and min.insync.replicas={least}: nobody can write to it"
        yield wrong(text, f"{mend}min.insync.replicas=1")
    elif least == replicas > 1:
        text = f"{name} has min.insync.replicas={least} of {replicas}: if one broker is down, nobody can write"
        yield weak(text, f"{mend}min.insync.replicas=1")
