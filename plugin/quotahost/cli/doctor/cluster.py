"""Asks a running cluster whether quotahost's principals may do what they need with its topics, and nobody else.

``quotahost doctor --against`` asks as somebody without credentials, and with the credentials that it is given. It
writes nothing to the cluster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from quotahost.cli.console import Finding, good, note, weak, wrong
from quotahost.cli.doctor.rights import OPEN, RECIPE, STANDARD, named, needed
from quotahost.cli.doctor.topic_shape import check_shapes
from quotahost.kafka.rights import CHANGES, NoAnswer, Rights, ask
from quotahost.records.topics import GROUPS, Party, Topic
from quotahost.settings.broker import Settings

_EVERYBODY: Final = "User:*"
_NEEDS: Final = {
    Party.PLUGINS: "the brokers' plugins need",
    Party.PIPELINE: "the pipeline needs",
    Party.WATCHERS: "the watchers need",
    Party.OPERATORS: "the operators need",
}
#: One party writes to each topic. Create alone changes nothing that exists.
_LIES: Final = CHANGES - {"Create"}


def check_cluster(
    against: str, config: Mapping[str, str], settings: Settings | None, party: Party | None = None
) -> Iterator[Finding]:
    """Who may do what with the topics of a running cluster.

    Args:
        against: HOST:PORT of one of its brokers.
        config: how to connect, in librdkafka's names, secrets among it; empty to connect as anybody can.
        settings: name the topics; without them they have their default names.
        party: whose credentials these are; their rights are compared with what it needs.
    """
    topics = named(settings)
    try:
        rights = ask({**config, "bootstrap.servers": against}, tuple(topics), party is Party.PLUGINS)
    except NoAnswer as problem:
        yield _no_answer(against, config, problem)
        return
    if not config and "Alter" in rights.cluster:
        yield weak(
            f"{against} lets a client without credentials do everything: there is no authorizer, or {OPEN} is true; "
            f"so everybody who can connect may write to {', '.join(topics)}",
            f"an authorizer ({STANDARD}) and {RECIPE}",
        )
        return
    yield from _of_acls(rights, topics)
    if party is not None:
        yield from _of_party(rights, settings, party)
    else:
        # With credentials this may be the brokers' or the pipeline's own principal, whose rights are right.
        yield from _of_client(rights, topics, against, "these credentials" if config else "")
    yield from check_shapes(rights, topics)


def _no_answer(against: str, config: Mapping[str, str], problem: NoAnswer) -> Finding:
    who = "with these credentials" if config else "a client without credentials"
    say = wrong if config else note  # a listener that wants credentials is right to turn anybody away
    return say(f"{against} doesn't answer {who}: {problem}", "another listener, or --client-config FILE")


def _of_acls(rights: Rights, topics: Mapping[str, Topic]) -> Iterator[Finding]:
    if rights.acls is None:
        yield note("ACLs are not checked: this client may not look at them", "--client-config FILE of a super user")
        return
    writers: dict[str, dict[str, str]] = defaultdict(dict)
    for each in rights.acls:
        if each.principal == _EVERYBODY:
            danger = f": whoever does {topics[each.topic].danger}" if each.operation in CHANGES else ""
            yield weak(
                f"an ACL for {each.pattern} lets everybody (User:*) {each.operation} {each.topic}{danger}",
                f"remove it with kafka-acls.sh, and give {RECIPE}",
            )
        elif each.operation in _LIES:
            writers[each.topic][each.principal] = f"{each.operation} by the ACL for {each.pattern}"
    for topic, who in writers.items():
        yield _of_writers(topic, topics[topic], who)


def _of_writers(name: str, topic: Topic, who: Mapping[str, str]) -> Finding:
    """Whom ACLs let change a topic; super users need none, and are not listed."""
    if len(who) == 1:
        return good(f"ACLs let nobody else than {next(iter(who))} write to {name}")
    if topic.watchers and "Write" in topic.watchers:  # several people may watch
        return good(f"ACLs let {', '.join(sorted(who))} write to {name}, and watch")
    listed = "; ".join(f"{principal} may {how}" for principal, how in sorted(who.items()))
    return weak(
        f"ACLs let more than one principal write to {name}, of which one is enough: {listed}. Whoever does "
        f"{topic.danger}",
        "remove what is too much with kafka-acls.sh",
    )


def _of_party(rights: Rights, settings: Settings | None, party: Party) -> Iterator[Finding]:
    """What the party lacks, and what it has beyond its needs."""
    lacking = list(_lacking(rights, settings, party))
    yield from (wrong(f"these credentials {text}, which {_NEEDS[party]}", RECIPE) for text in lacking)
    if not lacking:
        yield good(f"these credentials have all that {_NEEDS[party]}: {', '.join(needed(settings, party))}")
    beyond = {
        name: (rights.own.get(name, frozenset()) & _LIES) - set(topic.operations(party))
        for name, topic in named(settings).items()
    }
    for name, operations in beyond.items():
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
    if not rights.group and any("Read" in each for each in needed(settings, party).values()):
        yield f"may not Describe groups {GROUPS}*"
    if (
        settings
        and "cordon" in settings.tasks
        and (lacks := sorted({"AlterConfigs", "DescribeConfigs"} - rights.cluster))
    ):
        yield f"may not {', '.join(lacks)} on the cluster for the task cordon"


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
                yield weak(f"on {against} a client without credentials {what}{danger}", RECIPE)
    if denied and rights.own:
        yield good(f"{who or 'a client without credentials'} has no right to quotahost's topics on {against}")
    elif not rights.own:
        yield note(f"{against} has none of quotahost's topics yet")
