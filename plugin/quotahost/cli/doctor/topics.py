"""Checks who may do what with quotahost's topics: whoever may write to one decides about other clients.

``quotahost.records.topics`` declares the topics and who needs which rights.

1. :func:`check_rights` sees from a properties file whether there is an authorizer at all.
2. :func:`check_cluster` asks a running cluster (``quotahost doctor --against``), as somebody without credentials or
   with those that it is given: whom ACLs let in, what the client itself may do and lacks, and how the topics are kept.

Nothing is written to the cluster.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from quotahost.cli.console import Finding, good, note, weak, wrong
from quotahost.cli.doctor.protection import LOCAL_ALONE, OPEN, SEE_ALL, STANDARD
from quotahost.cli.property_files import AUTHORIZER, FENCES, BrokerFile
from quotahost.kafka.admin import Shape
from quotahost.kafka.client import NoAnswer
from quotahost.kafka.rights import CHANGES, Rights, ask
from quotahost.records.topics import (
    CLUSTER_VOLUMES,
    GROUPS,
    LOOKS,
    QUOTAS,
    REFUSED,
    SHARES,
    SNAPSHOTS,
    TICKS,
    TOPICS,
    USAGE,
    WATCH,
    Operation,
    Party,
    Topic,
)
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from quotahost.settings.properties import SNAPSHOT_READERS

_RECIPE: Final = "the rights of docs/security.md (conf/secured/acls.sh)"
_EVERYBODY: Final = "User:*"
_NEEDS: Final = {
    Party.PLUGINS: "the brokers' plugins need",
    Party.PIPELINE: "the pipeline needs",
    Party.WATCHERS: "the watchers need",
    Party.OPERATORS: "the operators need",
}
#: One party writes to each topic. Create alone changes nothing that exists.
_LIES: Final = CHANGES - {"Create"}
_WRITES: Final = ("Write", "All")
_DELETED: Final = (REFUSED, TICKS)  # nobody needs the past of these
_WRITTEN_BY: Final = {SNAPSHOTS: "publish-volumes", USAGE: "publish-usage", LOOKS: "publish-usage"}
_LARGEST: Final = 1048588  # bytes; Kafka's default, to which a producer's default fits


# ---- which topics, and who needs what --------------------------------------------------------------------------


def named(settings: Settings | None) -> dict[str, Topic]:
    """The topics by their names, as these settings have them; by their default names without settings."""
    return {topic.named(settings.topics_prefix) if settings else topic.name: topic for topic in TOPICS}


def _believed(settings: Settings) -> list[Topic]:
    """The topics by which a broker with these settings decides about clients."""
    return [
        *([CLUSTER_VOLUMES] if settings.factor_source == "cluster-volumes" else []),
        *([SNAPSHOTS] if settings.factor_source in SNAPSHOT_READERS else []),
        *([USAGE, SHARES, QUOTAS] if "cluster-quota" in settings.supplier else []),
    ]


def needed(settings: Settings | None, party: Party) -> dict[str, frozenset[Operation]]:
    """By topic, whether the party must read or write it: without that it doesn't do what is configured.

    ``settings`` name the topics and, for the plugins, say which of them they use; without settings all.
    """
    needs: dict[str, frozenset[Operation]] = {}
    for name, topic in named(settings).items():
        operations = {right for right in topic.operations(party) if right in ("Read", "Write")}
        if settings is not None and party is Party.PLUGINS:
            is_followed = topic in (WATCH, QUOTAS) and "publish-usage" in settings.tasks
            has_budgets = topic is QUOTAS and settings.budgets == "on"
            if not is_followed and not has_budgets and topic not in _believed(settings):
                operations.discard("Read")
            if _WRITTEN_BY.get(topic) not in settings.tasks:
                operations.discard("Write")
        if operations:
            needs[name] = frozenset(operations)
    return needs


# ---- from a properties file ------------------------------------------------------------------------------------


def check_rights(settings: Settings, broker: BrokerFile) -> Iterator[Finding]:
    """What opens to everybody the topics that this broker believes or is watched by, as far as its properties show."""
    authorizer = broker.get(AUTHORIZER)
    inner = settings.fence_authorizer if authorizer in FENCES else authorizer
    has_none = not inner or inner == "none"
    if broker.get("process.roles") == "controller" or not (has_none or broker.get(OPEN).lower() == "true"):
        return
    why, remedy, who = f"{OPEN} is true", f"{OPEN}=false, or {_RECIPE}", "everybody"
    if has_none:
        why = f"{PREFIX}fence.authorizer is none" if authorizer in FENCES else f"{AUTHORIZER} is not set"
        remedy, who = f"an authorizer ({STANDARD}) and {_RECIPE}", "everybody who can connect"
    names = {topic: name for name, topic in named(settings).items()}
    if believed := ", ".join(name for topic, name in names.items() if topic in _believed(settings)):
        may = f"{who} may write to {believed}, and this broker decides by that about all producers"
        if not has_none:
            may = f"unless ACLs are set for {believed}, everybody may write there, and this broker decides by it about "
            may += "all producers"
        yield weak(f"{why}: {may}", remedy)
    if "publish-usage" in settings.tasks:
        unless = "" if has_none else "unless ACLs are set for them, "
        yield weak(
            f"{why}: {unless}{who} may write to {names[WATCH]}, by which the task publish-usage shows the names and "
            f"rates of all clients, and read them in {names[LOOKS]}",
            remedy,
        )


# ---- from a running cluster ------------------------------------------------------------------------------------


def check_cluster(
    against: str, config: Mapping[str, str], settings: Settings | None, party: Party | None = None
) -> Iterator[Finding]:
    """Who may do what with the topics of a running cluster, and how it keeps them.

    ``config`` is how to connect, in librdkafka's names, empty to connect as anybody can. ``party`` is whose credentials
    these are; their rights are compared with what it needs.
    """
    topics = named(settings)
    try:
        rights = ask({**config, "bootstrap.servers": against}, tuple(topics), party is Party.PLUGINS)
    except NoAnswer as problem:
        who = "with these credentials" if config else "a client without credentials"
        # A listener that wants credentials is right to turn anybody away.
        say = wrong if config or party else note
        yield say(f"{against} doesn't answer {who}: {problem}", "another listener, or --client-config FILE")
        return
    if settings and settings.factor_source == "local" and rights.brokers > 1:
        yield weak(f"{LOCAL_ALONE} ({against} has {rights.brokers} brokers)", SEE_ALL)
    if not config and "Alter" in rights.cluster:
        yield weak(
            f"{against} lets a client without credentials do everything: there is no authorizer, or {OPEN} is true; "
            f"so everybody who can connect may write to {', '.join(topics)}",
            f"an authorizer ({STANDARD}) and {_RECIPE}",
        )
        return
    yield from _of_acls(rights, topics)
    if party is not None:
        yield from _of_party(rights, settings, party)
    else:
        # With credentials this may be the brokers' or the pipeline's own principal, whose rights are right.
        yield from _of_client(rights, topics, against, "these credentials" if config else "")
    yield from _of_shapes(rights, topics)


def _of_acls(rights: Rights, topics: Mapping[str, Topic]) -> Iterator[Finding]:
    if rights.acls is None:
        yield note("ACLs are not checked: this client may not look at them", "--client-config FILE of a super user")
        return
    holders: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for acl in rights.acls:
        if acl.principal == _EVERYBODY:
            danger = f": whoever does {topics[acl.topic].danger}" if acl.operation in CHANGES else ""
            yield weak(
                f"an ACL for {acl.pattern} lets everybody (User:*) {acl.operation} {acl.topic}{danger}",
                f"remove it with kafka-acls.sh, and give {_RECIPE}",
            )
        else:
            holders[acl.topic][acl.principal][acl.operation] = acl.pattern
    for name, by_principal in holders.items():
        yield from _of_changes(name, topics[name], by_principal)
    watch, looks = (next(name for name, topic in topics.items() if topic is one) for one in (WATCH, LOOKS))
    yield from _of_readers(looks, watch, holders)


def _of_changes(name: str, topic: Topic, holders: Mapping[str, Mapping[str, str]]) -> Iterator[Finding]:
    """Whom ACLs let change a topic; super users need none, and are not listed."""
    changes = [
        (principal, operation, pattern)
        for principal, rights in sorted(holders.items())
        for operation, pattern in sorted(rights.items())
        if operation in _LIES
    ]
    writers = list(dict.fromkeys(principal for principal, operation, _ in changes if operation in _WRITES))
    if "Write" in topic.watchers:  # several people may watch, and each writes a record for it
        excess = [change for change in changes if change[1] != "Write"]
        what, why, right = "somebody do more than write to", "which nobody needs", ", and watch"
    elif len(writers) > 1:
        excess, what, why, right = changes, "more than one principal write to", "of which one is enough", ""
    else:
        excess = [change for change in changes if change[0] not in writers]
        what, why, right = "somebody change", "and not to write to it", ""
    if excess:
        listed = "; ".join(
            f"{principal} may {operation} by the ACL for {pattern}" for principal, operation, pattern in excess
        )
        yield weak(
            f"ACLs let {what} {name}, {why}: {listed}. Whoever does {topic.danger}",
            "remove what is too much with kafka-acls.sh",
        )
    elif writers:
        only = "" if right else "nobody else than "
        yield good(f"ACLs let {only}{', '.join(writers)} write to {name}{right}")


def _of_readers(looks: str, watch: str, holders: Mapping[str, Mapping[str, Mapping[str, str]]]) -> Iterator[Finding]:
    """Who may see the names and rates of all clients, and whether all of them may also watch."""
    readers = {name for name, rights in holders.get(looks, {}).items() if {"Read", "All"} & rights.keys()}
    watchers = {name for name, rights in holders.get(watch, {}).items() if {"Write", "All"} & rights.keys()}
    if strangers := sorted(readers - watchers):
        yield weak(
            f"ACLs let {', '.join(strangers)} Read {looks}, but not watch: whoever does sees the names and rates of "
            "all clients, and nobody needs that right alone",
            "remove it with kafka-acls.sh",
        )
    elif readers:
        yield good(f"ACLs let nobody else than {', '.join(sorted(readers))} Read {looks}, and they watch")


def _of_party(rights: Rights, settings: Settings | None, party: Party) -> Iterator[Finding]:
    lacking = list(_lacking(rights, settings, party))
    yield from (wrong(f"these credentials {text}, which {_NEEDS[party]}", _RECIPE) for text in lacking)
    if not lacking:
        yield good(f"these credentials have all that {_NEEDS[party]}: {', '.join(needed(settings, party))}")
    for name, topic in named(settings).items():
        dangerous = _LIES | {"Read"} if topic is LOOKS else _LIES  # a look shows the names and rates of all clients
        operations = (rights.own.get(name, frozenset()) & dangerous) - set(topic.operations(party))
        if operations:
            yield weak(f"these credentials may also {', '.join(sorted(operations))} {name}: more than {_NEEDS[party]}")


def _lacking(rights: Rights, settings: Settings | None, party: Party) -> Iterator[str]:
    topics = named(settings)
    for name, operations in needed(settings, party).items():
        if name in rights.missing:
            if "Create" in topics[name].operations(party) and not rights.missing[name]:
                yield f"may not Create {name}, which doesn't exist"
        elif lacks := sorted(set[str](operations) - rights.own.get(name, frozenset())):
            yield f"may not {', '.join(lacks)} {name}"
    if party is not Party.PLUGINS:
        return
    if not rights.group and any("Read" in needs for needs in needed(settings, party).values()):
        yield f"may not Describe groups {GROUPS}*"
    if (
        settings
        and "cordon" in settings.tasks
        and (lacks := sorted({"AlterConfigs", "DescribeConfigs"} - rights.cluster))
    ):
        yield f"may not {', '.join(lacks)} on the cluster for the task cordon"


def _of_client(rights: Rights, topics: Mapping[str, Topic], against: str, who: str) -> Iterator[Finding]:
    allowed = {topic: operations for topic, operations in rights.own.items() if operations}
    for topic, operations in allowed.items():
        what = f"may {', '.join(sorted(operations))} {topic}"
        danger = f": whoever does {topics[topic].danger}" if operations & CHANGES else ""
        on = f"on {against} a client without credentials"
        yield note(f"{who} {what}") if who else weak(f"{on} {what}{danger}", _RECIPE)
    if not rights.own:
        yield note(f"{against} has none of quotahost's topics yet")
    elif not allowed:
        yield good(f"{who or 'a client without credentials'} has no right to quotahost's topics on {against}")


def _of_shapes(rights: Rights, topics: Mapping[str, Topic]) -> Iterator[Finding]:
    """What is wrong or weak with the topics that the client may look at."""
    seen = {name: shape for name, shape in rights.shapes.items() if shape.config is not None}
    problems = [finding for name, shape in seen.items() for finding in _of_shape(name, topics[name], shape)]
    yield from problems
    if seen and not problems:
        yield good(f"replicas, compaction and size of records are right: {', '.join(seen)}")
    unseen = [name for name in rights.shapes if name not in seen]
    if unseen:
        yield note(f"the configuration of {', '.join(unseen)} is not checked: DescribeConfigs is missing there")


def _of_shape(name: str, topic: Topic, shape: Shape) -> Iterator[Finding]:
    config = shape.config or {}
    if topic not in _DELETED and "compact" not in config.get("cleanup.policy", "compact"):
        yield wrong(
            f"{name} has cleanup.policy={config['cleanup.policy']}: it loses the records of silent brokers",
            "kafka-configs.sh: cleanup.policy=compact",
        )
    if config.get("message.timestamp.type", "LogAppendTime") != "LogAppendTime":
        yield weak(
            f"{name} has message.timestamp.type={config['message.timestamp.type']}: ages then follow the clocks of its "
            "writers",
            "kafka-configs.sh: message.timestamp.type=LogAppendTime",
        )
    largest = int(config.get("max.message.bytes", _LARGEST))
    if largest < _LARGEST:
        yield weak(
            f"{name} has max.message.bytes={largest}: the records of a large cluster may not fit",
            f"kafka-configs.sh: max.message.bytes={_LARGEST}",
        )
    replicas, least = shape.replicas, int(config.get("min.insync.replicas", 1))
    remedy = "kafka-configs.sh: min.insync.replicas=1"
    if least > replicas:
        yield wrong(f"{name} has {replicas} replicas and min.insync.replicas={least}: nobody can write to it", remedy)
    elif least == replicas > 1:
        yield weak(f"{name} has min.insync.replicas={least} of {replicas}: one broker down ends all writing", remedy)
