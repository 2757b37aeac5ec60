"""``quotahost explain``: from the lines that Java prints to the sentences that an operator reads.

A script stands in for java; tests/broker/host/test_explain.py asks a running broker.
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from quotahost.cli import jars
from quotahost.cli.explain import query
from quotahost.cli.explain.answer import Answer, QuotaState, escaped, parse
from quotahost.cli.explain.command import named, show
from quotahost.cli.explain.query import Unanswered, trouble
from quotahost.cli.explain.wording import common_facts, limited_by, quota_facts
from quotahost.cli.main import app
from quotahost.host.messages import plain
from quotahost.model import Client, QuotaType, State
from tests.unit.cli.commands import write_jar
from tools.tables import DOCS

PRODUCE, FETCH, REQUEST, MUTATIONS = QuotaType


def quota(**changes: Any) -> QuotaState:
    """The supplier client-quotas gives alice 5 MB/s, and she uses little of it."""
    facts: dict[str, Any] = {
        "type": PRODUCE, "user": "alice", "client_id": "", "base": 5e6, "limit": 5e6, "place": "known",
        "supplier": "client-quotas", "exempt": False, "stand_in": None, "stand_in_from": "newcomers",
        "floored": False, "failed": False, "rate": 1e6, "delay": None, "tokens": None,
    }  # fmt: skip
    return QuotaState(**(facts | changes))


def answer(*quotas: QuotaState, **changes: Any) -> Answer:
    """Broker 1 enforces, and nothing else is out of the ordinary."""
    facts: dict[str, Any] = {
        "pid": "42", "node": "1", "client": Client("alice", "app"), "mode": "enforce", "state": State.OPEN,
        "factor": 1.0, "limit_factor": 1.0, "cause": "", "factor_types": ("PRODUCE",),
        "fence_installed": False, "fence_closed": False, "fence_passes": False, "clients": 1, "clients_max": 3,
        "creation_refused": False,
        "topics_threshold": 0.0, "topics_rate": 0.0, "topics_over": (), "source": "",
        "controller": "1", "mutation_seconds": 100.0,
        "quotas": quotas or (quota(),),
    }  # fmt: skip
    return Answer(**(facts | changes))


THROTTLE: dict[str, Any] = {
    "state": State.THROTTLE, "factor": 0.5, "limit_factor": 0.5, "cause": "broker 2, volume /dev/sdb",
}  # fmt: skip
PAUSE: dict[str, Any] = {"state": State.PAUSE, "factor": 0.0, "limit_factor": 0.0, "cause": "disk full"}


# ---- Java's lines ----

LINES = (
    "broker\t42\t1\n"
    "state\tmode\tenforce\nstate\tstate\tTHROTTLE\nstate\tfactor\t0.5\nstate\tlimit-factor\t0.7\n"
    "state\tcause\tbroker 2, volume \\u00fc\\\\\nstate\tfallback\tfalse\nstate\tfactor-types\tFETCH,PRODUCE\n"
    "state\tfence-installed\ttrue\nstate\tfence-closed\tfalse\nstate\tfence-passes\tfalse\n"
    "state\tcreation-refused\ttrue\n"
    "state\ttopics-threshold\t3000.0\nstate\ttopics-rate\t3100.5\nstate\ttopics-over\ta,b.c\n"
    "state\tsource\tsnapshots\nstate\tcontroller\t7\nstate\tmutation-seconds\t11\n"
    "state\tclients\t3\nstate\tclients-max\t3\n"
    "quota\tPRODUCE\talice\ta\\tb\tNaN\t3000.0\tknown\t\tfalse\t6000.0\tfalse\tmeasured\tfalse\t2950.0\tNaN\tNaN\t\t\tfactor\n"
    "quota\tFETCH\t<newcomers>\t\t100.0\tnull\tnewcomer\tmine\tfalse\tNaN\tfalse\t\ttrue\tNaN\tNaN\t-0.5\n"
)


def test_javas_lines_become_values() -> None:
    found = parse(LINES.splitlines(), Client("alice", "a\tb"))
    assert (found.pid, found.node, found.state, found.factor) == ("42", "1", State.THROTTLE, 0.5)
    assert found.limit_factor == 0.7
    assert found.cause == "broker 2, volume ü\\"
    assert found.factor_types == ("FETCH", "PRODUCE")
    assert (found.fence_installed, found.fence_closed, found.clients, found.clients_max) == (True, False, 3, 3)
    assert (found.topics_threshold, found.topics_rate, found.topics_over) == (3000, 3100.5, ("a", "b.c"))
    assert found.source == "snapshots"
    assert (found.controller, found.is_active_controller, found.mutation_seconds) == ("7", False, 11)
    produce, fetch = found.quotas
    assert produce == quota(
        client_id="a\tb", base=None, limit=3000.0, supplier="", stand_in=6000.0, stand_in_from="measured",
        rate=2950.0, bound="factor",
    )  # fmt: skip
    assert (fetch.is_newcomer, fetch.supplier, fetch.limit, fetch.failed) == (True, "mine", None, True)
    assert fetch.tokens == -0.5


@pytest.mark.parametrize(
    "lines", [[], ["broker\t1\t2"], [*LINES.splitlines()[:-2], "quota\tPRODUCE\ta\tb\t1.0\t1.0\tknown"]]
)
def test_lines_of_another_version_are_an_error(lines: list[str]) -> None:
    with pytest.raises(ValueError, match=r"unpack|Field required"):
        parse(lines, Client("alice", "app"))


@pytest.mark.parametrize(
    ("rate", "shown"), [(1e6 / 3, "333,333 bytes/s"), (1e6, "1,000,000 bytes/s (1M)"), (0.5, "0.5 bytes/s")]
)
def test_a_part_of_a_quota_is_shown_without_decimals_that_nobody_reads(rate: float, shown: str) -> None:
    assert dict(quota_facts(answer(), quota(base=rate, limit=rate)))["limit"] == shown


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_name_survives_as_a_plain_argument(text: str) -> None:
    argument = escaped(text)
    assert argument.isascii()
    assert argument.isprintable()
    assert plain(argument) == text


@pytest.mark.parametrize(
    ("given", "client"),
    [
        ({"client": "alice/app"}, ("alice", "app")),
        ({"client": "CN=a/b/app"}, ("CN=a/b", "app")),
        ({"client": "alice/"}, ("alice", "")),
        ({"user": "a/b", "client_id": "c/d"}, ("a/b", "c/d")),
        ({"user": "alice", "client_id": ""}, ("alice", "")),
    ],
)
def test_a_client_is_given_as_one_name_or_as_two(given: dict[str, str], client: tuple[str, str]) -> None:
    parts = {"client": None, "user": None, "client_id": None, **given}
    assert named(**parts) == client


@pytest.mark.parametrize(
    "given", [{}, {"client": "alice"}, {"client": "/app"}, {"user": "alice"}, {"client": "a/b", "user": "a"}]
)
def test_an_incomplete_client_is_an_error(given: dict[str, str]) -> None:
    with pytest.raises(typer.BadParameter, match="--client"):
        named(**{"client": None, "user": None, "client_id": None, **given})


# ---- what limits the client ----

IDLE = "Nothing limits this client now; PRODUCE would first be limited by the user's quota of client-quotas"


@pytest.mark.parametrize(
    ("one", "changes", "sentence"),
    [
        ({"bound": "quota", "rate": 4.9e6}, {}, "PRODUCE is limited by the user's quota of client-quotas"),
        ({"bound": "quota", "delay": 20.0, "client_id": "app", "supplier": "static"}, {},
         "PRODUCE is limited by the client's quota of static"),
        ({"bound": "quota", "delay": 20.0, "user": "", "client_id": "app"}, {},
         "PRODUCE is limited by the client-id's quota of client-quotas"),
        ({"bound": "quota", "delay": 20.0, "user": "<group a%20b>", "supplier": "mine"}, {},
         "PRODUCE is limited by the group's quota of mine"),
        ({"bound": "quota", "delay": 20.0, "user": "<broker>", "supplier": "static"}, {},
         "PRODUCE is limited by the whole broker's quota of static"),
        ({"bound": "quota", "delay": 20.0, "place": "newcomer", "supplier": "", "user": "<newcomers>"}, {},
         "PRODUCE is limited by the newcomers' quota"),
        ({"bound": "factor", "delay": 20.0, "limit": 2.5e6}, THROTTLE,
         "PRODUCE is limited by the factor 0.5: broker 2, volume /dev/sdb"),
        ({"bound": "factor", "delay": 20.0, "base": None, "stand_in": 4e6, "limit": 2e6, "supplier": ""}, THROTTLE,
         "PRODUCE is limited by the factor 0.5: broker 2, volume /dev/sdb"),
        ({"bound": "quota", "delay": 20.0, "base": 1e3, "limit": 1e3}, THROTTLE,
         "PRODUCE is limited by the user's quota of client-quotas"),  # below the floor, where no factor acts
        ({"bound": "quota", "type": FETCH}, THROTTLE, "FETCH is limited by the user's quota of client-quotas"),
        ({"bound": "floor", "rate": 3.5e4, "limit": 3.5e4, "floored": True}, PAUSE,
         "PRODUCE is limited by the floor, which the factor 0 has come down to: disk full"),
        ({"bound": "fence", "rate": None}, PAUSE | {"fence_installed": True, "fence_closed": True, "limit_factor": 1.0},
         "PRODUCE is limited by the fence (disk full)"),
        ({"bound": "quota", "rate": 4.9e6}, PAUSE | {"fence_closed": True, "fence_passes": True, "limit_factor": 1.0},
         "PRODUCE is limited by the user's quota of client-quotas"),
        ({"type": MUTATIONS, "limit": None}, PAUSE | {"creation_refused": True},
         "CONTROLLER_MUTATION is limited by the PAUSE, in which no topics and partitions are created (disk full)"),
        ({"bound": "quota", "rate": 4.9e6, "type": REQUEST, "delay": 20.0}, {},
         "REQUEST is limited by the user's quota of client-quotas"),
        ({"bound": "topic quota", "rate": None}, {},
         "PRODUCE is limited by topic quotas, which have turned it back in the last 15 s"),
        ({"delay": 20.0}, {}, IDLE),
        ({"rate": 1e6}, {}, IDLE),
        ({"rate": None}, {}, IDLE),
        ({"base": None, "limit": None, "supplier": ""}, {},
         "Nothing limits this client, as it has no limit for PRODUCE"),
        ({"base": None, "limit": None, "exempt": True, "supplier": "broker"}, {},
         "Nothing limits this client, as it is exempt from all quotas: it is a broker of this cluster"),
        ({"limit": None, "rate": 9e9}, {"mode": "shadow", "fence_closed": True},
         "Nothing limits this client, as mode=shadow enforces nothing"),
        ({"bound": "quota"}, PAUSE | {"fence_closed": True, "limit_factor": 1.0, "shadow": ("factor",)},
         "PRODUCE is limited by the user's quota of client-quotas"),
        ({"type": MUTATIONS, "limit": None}, PAUSE | {"creation_refused": True, "shadow": ("factor",)},
         "Nothing limits this client, as it has no limit for CONTROLLER_MUTATION"),
    ],
)  # fmt: skip
def test_one_sentence_names_what_limits_the_client(one: dict[str, Any], changes: dict[str, Any], sentence: str) -> None:
    found = answer(quota(**one), **changes)
    assert limited_by(found, found.quotas) == sentence


TRIED: dict[str, Any] = {
    "shadow_supplier": "static", "shadow_user": "alice", "shadow_client_id": "app", "shadow_base": 1e6,
    "shadow_limit": 1e6, "shadow_rate": 3.2e6,
}  # fmt: skip
ALONE = "supplier static would give 1,000,000 bytes/s (1M), shared by this client alone (user alice, client-id app)"
SHADOW: dict[str, Any] = {"shadow": ("factor",)}


@pytest.mark.parametrize(
    ("one", "changes", "texts"),
    [
        ({}, {}, []),
        (TRIED, {}, [f"{ALONE}; uses 3,200,000 bytes/s (3200K); would be delayed"]),
        (TRIED | {"shadow_rate": 1e6}, {}, [f"{ALONE}; uses 1,000,000 bytes/s (1M); would not be delayed"]),
        (TRIED | {"shadow_rate": None}, {},
         [f"{ALONE}; how much of it is used isn't measured, or only together with others"]),
        (TRIED | {"shadow_limit": 5e5}, THROTTLE,
         [f"{ALONE} (500,000 bytes/s (500K) by the factor); uses 3,200,000 bytes/s (3200K); would be delayed"]),
        ({"rate": 3e6, "shadow_factor_limit": "2500000.0"}, THROTTLE | SHADOW,
         ["the factor 0.5 would make the limit 2,500,000 bytes/s (2500K); uses 3,000,000 bytes/s (3M); "
          "would be delayed"]),
        ({"shadow_factor_limit": "35000.0"}, PAUSE | SHADOW | {"fence_closed": True},
         ["the fence would turn back its produce requests (disk full)"]),
        ({"shadow_factor_limit": "35000.0"}, PAUSE | SHADOW | {"fence_closed": True, "fence_passes": True}, []),
        ({"base": 5e5, "limit": None}, {"mode": "shadow"},
         ["the quota would be the limit; uses 1,000,000 bytes/s (1M); would be delayed"]),
    ],
)  # fmt: skip
def test_rules_in_shadow_say_what_they_would_do(one: dict[str, Any], changes: dict[str, Any], texts: list[str]) -> None:
    found = answer(quota(**one), **changes)
    assert [text for label, text in quota_facts(found, found.quotas[0]) if label == "in shadow"] == texts


@pytest.mark.parametrize(
    ("changes", "fence", "mode"),
    [
        ({"mode": "shadow"},
         "open, as the factor is in shadow; else this client's produce requests would be turned back",
         "shadow: nothing is enforced"),
        (SHADOW | {"affected_topics": 2},
         "open, as the factor is in shadow; else requests to affected topics on full volumes would be turned back",
         "enforce, but for what is in shadow: factor"),
        ({"shadow": ("supplier.static",)}, "closed: this client's produce requests are turned back",
         "enforce, but for what is in shadow: supplier.static"),
    ],
)  # fmt: skip
def test_a_fence_in_shadow_is_open_and_the_mode_names_the_rules(changes: dict[str, Any], fence: str, mode: str) -> None:
    facts = dict(common_facts(answer(**PAUSE, fence_installed=True, fence_closed=True, **changes)))
    assert (facts["fence"], facts["mode"]) == (fence, mode)
    assert facts.get("scope", "nobody is slowed").endswith("nobody is slowed")


def test_the_factor_in_shadow_multiplies_nothing() -> None:
    facts = dict(common_facts(answer(**THROTTLE | SHADOW | {"limit_factor": 1.0})))
    assert facts["factor"] == "0.5, on PRODUCE; in shadow: limits are not multiplied by it"


def test_topics_in_shadow_are_only_counted() -> None:
    over = {"topics_threshold": 3e6, "topics_rate": 4e6, "topics_over": ("a", "b"), "topics_in_shadow": ("b",)}
    assert dict(common_facts(answer(**over)))["topics"].endswith("turned back: a; in shadow, so only counted: b")


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"cause": "broker 2, volume /dev/sdb"}, False),  # the fullest volume is no cause of a factor of 1
        ({"cause": "fallback.action=OPEN: broker 2: no snapshot"}, True),
        (THROTTLE, True),
    ],
)
def test_a_cause_is_shown_where_something_is_caused(changes: dict[str, Any], shown: bool) -> None:
    assert ("cause" in dict(common_facts(answer(**changes)))) == shown


TOPICS: dict[str, Any] = THROTTLE | {"affected_topics": 3}
HELD: dict[str, Any] = TOPICS | PAUSE | {"fence_closed": True}
ORDERS: dict[str, Any] = {
    "affected_topic": "orders", "affected_place": "broker 3, volume /dev/sdb", "user": "<slowed alice>", "limit": 2.5e6,
}  # fmt: skip
WRITES = "since it writes to orders, which has a replica on broker 3, volume /dev/sdb"


@pytest.mark.parametrize(
    ("one", "changes", "sentence"),
    [
        (ORDERS | {"bound": "factor"}, TOPICS, f"PRODUCE is limited by the factor 0.5, {WRITES}"),
        (ORDERS | {"bound": "fence"}, HELD, f"PRODUCE is limited by the fence, {WRITES}"),
        ({"rate": 1e6}, HELD,
         "Nothing limits this client now: it keeps its full quota, as it has not written to an affected topic; PRODUCE "
         "would first be limited by the user's quota of client-quotas"),
        ({"bound": "quota", "rate": 4.9e6}, TOPICS, "PRODUCE is limited by the user's quota of client-quotas"),
        ({"type": FETCH, "rate": 1.0}, TOPICS,
         "Nothing limits this client now; FETCH would first be limited by the user's quota of client-quotas"),
    ],
)  # fmt: skip
def test_a_factor_for_topics_names_the_topic_or_that_the_client_is_spared(
    one: dict[str, Any], changes: dict[str, Any], sentence: str
) -> None:
    found = answer(quota(**one), **changes)
    assert limited_by(found, found.quotas) == sentence


@pytest.mark.parametrize(
    ("one", "scope", "shared"),
    [
        (ORDERS, f"this client is slowed, {WRITES}", "those of user alice who write to affected topics"),
        (ORDERS | {"user": "<slowed <group a%20b>>"}, f"this client is slowed, {WRITES}",
         "those of group a b who write to affected topics"),
        (ORDERS | {"user": "<slowed>", "client_id": "app"}, f"this client is slowed, {WRITES}",
         "those of client-id app, whatever the user who write to affected topics"),
        ({}, "this client keeps its full quota: it has not written to an affected topic", "user alice"),
    ],
)  # fmt: skip
def test_the_facts_say_for_whom_the_factor_is(one: dict[str, Any], scope: str, shared: str) -> None:
    found = answer(quota(**one), **TOPICS)
    told = dict(common_facts(found))
    assert told["scope"] == f"the factor is for those who write to 3 affected topics; {scope}"
    assert dict(quota_facts(found, found.quotas[0]))["quota"].endswith(f"shared by {shared}")
    assert "scope" not in dict(common_facts(answer(quota(), **THROTTLE)))


def test_all_types_that_are_limited_are_named() -> None:
    both = (
        quota(bound="quota"), quota(type=FETCH, bound="quota", user="<broker>", supplier="static"), quota()
    )  # fmt: skip
    assert limited_by(answer(*both), both) == (
        "PRODUCE is limited by the user's quota of client-quotas; "
        "FETCH is limited by the whole broker's quota of static"
    )


# ---- partition mutations ----


def mutations(**changes: Any) -> QuotaState:
    """Alice may make 5 mutations/s, and Kafka shows a mean that is above them."""
    bound = "quota" if (changes.get("tokens") or 0) < 0 else "nothing"
    facts = {"type": MUTATIONS, "base": 5.0, "limit": 5.0, "rate": 18.7, "delay": 9e3, "bound": bound}
    return quota(**(facts | changes))


ADMITTED = (
    "Nothing limits this client now; CONTROLLER_MUTATION would first be limited by the user's quota of client-quotas"
)


@pytest.mark.parametrize(
    ("tokens", "fact", "sentence"),
    [
        (-60.0, "-60 of 500 left: Kafka refuses mutations for another 12 s",
         "CONTROLLER_MUTATION is limited by the user's quota of client-quotas (for another 12 s)"),
        (-45.01, "-45.01 of 500 left: Kafka refuses mutations for another 9.1 s",
         "CONTROLLER_MUTATION is limited by the user's quota of client-quotas (for another 9.1 s)"),
        (0.0, "0 of 500 left: Kafka admits mutations", ADMITTED),
        (235.0, "235 of 500 left: Kafka admits mutations", ADMITTED),
        (None, "500 of 500 left: Kafka admits mutations", ADMITTED),
    ],
)  # fmt: skip
def test_the_tokens_on_the_controller_decide_whether_mutations_are_limited(
    tokens: float | None, fact: str, sentence: str
) -> None:
    found = answer(mutations(tokens=tokens))
    facts = dict(quota_facts(found, found.quotas[0]))
    assert facts["tokens"] == fact
    assert facts["measured"] == "18.7 mutations/s, a mean of 30 to 60 s by which Kafka throttles nobody"
    assert limited_by(found, found.quotas) == sentence


def test_a_limit_of_nothing_refuses_mutations_until_it_is_raised() -> None:
    found = answer(mutations(base=0.0, limit=0.0, tokens=-1.0))
    assert limited_by(found, found.quotas).endswith("(until the limit is raised)")


@pytest.mark.parametrize(
    ("controller", "who", "how"),
    [
        ("1001", "node 1001 knows, the active controller", "on its machine, run quotahost explain --broker-id 1001"),
        ("", "the active controller knows, and this node doesn't know which node that is",
         "ask again when the cluster has elected one"),
    ],
)  # fmt: skip
def test_a_node_that_is_not_the_active_controller_names_it_and_shows_no_tokens(
    controller: str, who: str, how: str
) -> None:
    one = mutations(tokens=500.0)  # auto-creation of topics makes a bucket on each broker that is never charged
    found = answer(one, controller=controller)
    assert dict(quota_facts(found, one)).get("tokens") == f"{who}: {how}"
    assert "measured" not in dict(quota_facts(found, one))
    assert limited_by(found, [one]) == f"Whether CONTROLLER_MUTATION is limited, {who}"
    assert limited_by(found, [quota(), one]) == f"{IDLE}; whether CONTROLLER_MUTATION is limited, {who}"
    delayed = quota(bound="quota", supplier="static")
    assert limited_by(found, [delayed, one]) == (
        f"PRODUCE is limited by the user's quota of static; whether CONTROLLER_MUTATION is limited, {who}"
    )


def test_without_a_limit_for_mutations_the_controller_is_not_mentioned() -> None:
    one = mutations(base=None, limit=None, supplier="", user="<unlimited>")
    found = answer(one, controller="1001")
    assert limited_by(found, [one]) == "Nothing limits this client, as it has no limit for CONTROLLER_MUTATION"
    assert "tokens" not in dict(quota_facts(found, one))


def test_the_delay_of_requests_is_said_to_contain_that_of_mutations() -> None:
    facts = dict(quota_facts(answer(), quota(type=REQUEST, rate=0.1, delay=4000.0)))
    assert facts["measured"] == (
        "0.1 %, delayed by 4,000 ms of late (partition mutations that were forwarded are delayed here, too)"
    )


# ---- facts ----


def test_a_factor_is_shown_with_the_steps_towards_it() -> None:
    assert dict(common_facts(answer()))["factor"] == "1, on PRODUCE"
    on_its_way = dict(common_facts(answer(**THROTTLE | {"limit_factor": 0.75})))
    assert on_its_way["factor"] == (
        "0.5, on PRODUCE; limits are multiplied by 0.75 now, on their way there in steps that max.mute allows"
    )
    assert on_its_way["cause"] == "broker 2, volume /dev/sdb"
    fenced = PAUSE | {"limit_factor": 1.0, "fence_installed": True, "fence_closed": True}
    assert dict(common_facts(answer(**fenced)))["factor"].endswith("the fence keeps the PAUSE")


@pytest.mark.parametrize(
    ("installed", "closed", "passes", "words"),
    [
        (False, False, False, "none: in a PAUSE the limits go down to the floor"),
        (True, False, False, "open"),
        (True, True, False, "closed: this client's produce requests are turned back"),
        (True, True, True, "closed; this client passes it in every state"),
    ],
)
def test_the_state_of_the_fence_is_shown(installed: bool, closed: bool, passes: bool, words: str) -> None:
    fence = {"fence_installed": installed, "fence_closed": closed, "fence_passes": passes}
    assert dict(common_facts(answer(**fence)))["fence"] == words


def test_a_quota_is_shown_with_its_sharers_and_its_supplier() -> None:
    facts = dict(quota_facts(answer(), quota(rate=4_937_421.3, delay=212.4)))
    assert facts == {
        "quota": "5,000,000 bytes/s (5M), shared by user alice",
        "from": "supplier client-quotas",
        "limit": "5,000,000 bytes/s (5M)",
        "measured": "4,937,421 bytes/s, delayed by 212 ms of late",
    }
    group = dict(quota_facts(answer(), quota(user="<group team%20a%2F%C3%BC>")))
    assert group["quota"].endswith("shared by group team a/ü")


def test_the_rate_that_stands_in_for_a_quota_is_shown_with_its_origin() -> None:
    one = quota(base=None, stand_in=4e6, limit=2e6, supplier="")
    facts = dict(quota_facts(answer(**THROTTLE), one))
    assert facts["from"] == "no supplier has an answer, so it is unlimited"
    assert facts["instead"].startswith("4,000,000 bytes/s (4M) (the newcomers' rate)")
    assert facts["limit"] == "2,000,000 bytes/s (2M), by the factor 0.5"
    measured = one.model_copy(update={"stand_in_from": "measured"})
    assert "(measured when the factor fell)" in dict(quota_facts(answer(**THROTTLE), measured))["instead"]


def test_a_supplier_that_fails_for_a_known_client_is_shown() -> None:
    assert "a supplier fails for this client now" in dict(quota_facts(answer(), quota(failed=True)))["from"]


@pytest.mark.parametrize(
    ("supplier", "full", "words"),
    [
        ("mine", False, "the supplier mine fails for it"),
        ("", True, "the table is full (clients.max)"),
        ("", False, "it has sent nothing since the broker's start"),
    ],
)
def test_the_reason_why_a_client_is_a_newcomer_is_shown(supplier: str, full: bool, words: str) -> None:
    new = quota(place="newcomer", supplier=supplier, user="<newcomers>")
    assert words in dict(common_facts(answer(new, clients=3 if full else 1)))["newcomer"]


def test_an_unknown_client_id_of_a_known_user_is_told_with_whom_it_shares() -> None:
    new = quota(place="newcomer", supplier="", user="<newcomers a%3Ab>", client_id="")
    assert "shares the quota of all client-ids of user a:b" in dict(common_facts(answer(new)))["newcomer"]
    long = answer(new, client=Client("a:b", "x" * 257))
    assert "its client-id has more than 256 characters" in dict(common_facts(long))["newcomer"]


def test_clients_that_nobody_measures_one_by_one_are_shown_together() -> None:
    facts = dict(quota_facts(answer(), quota(user="<unlimited>", client_id="", base=None, limit=None, rate=7.0)))
    assert facts["quota"] == "unlimited, shared by all clients without one"
    assert facts["measured"] == "only together with all other clients without a limit"


README_EXAMPLE = answer(
    quota(limit=2.5e6, rate=2_471_338.0, delay=412.0, bound="factor"),
    pid="4242", fence_installed=True, **THROTTLE,
)  # fmt: skip


def test_the_documents_show_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert show(README_EXAMPLE, PRODUCE) == 0
    printed = capsys.readouterr().out.strip("\n")
    assert (
        f"```console\n$ quotahost explain --client alice/app --type produce\n{printed}\n```"
        in (DOCS / "operate.md").read_text()
    )


def test_the_documents_show_what_is_printed_of_partition_mutations(capsys: pytest.CaptureFixture[str]) -> None:
    one = mutations(user="", client_id="terraform", supplier="controller-mutation", tokens=-45.0)
    assert show(answer(one), MUTATIONS) == 0
    *_, limit, tokens, measured, empty, last = capsys.readouterr().out.strip("\n").splitlines()
    assert "\n".join((limit, tokens, measured, empty, last)) in (DOCS / "operate.md").read_text()


# ---- the command ----


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A java that answers what is in the file ``answer`` beside it, and writes its arguments to ``arguments``."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/java"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/arguments\ncat {tmp_path}/answer\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "answer").write_text(LINES)
    (tmp_path / "package/_jar").mkdir(parents=True)
    write_jar(tmp_path / "package/_jar/quotahost.jar")
    monkeypatch.setattr(jars, "files", lambda _: tmp_path / "package")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["explain", *arguments])


def arguments(java: Path) -> list[str]:
    return (java / "arguments").read_text().splitlines()[-4:]


def test_the_answer_is_shown_in_plain_text_and_a_newcomer_ends_with_3(java: Path) -> None:
    result = run("--user", "alice", "--client-id", "a\tü")
    assert result.exit_code == 3
    assert arguments(java) == ["", "client", "alice", "a\\u0009\\u00fc"]
    assert "\nPRODUCE\n" in result.output
    assert "\nFETCH\n" in result.output
    assert result.output.strip().endswith("PRODUCE is limited by the factor 0.7: broker 2, volume ü\\.")
    assert "\x1b" not in result.output


def test_one_type_alone_is_shown_and_a_known_client_ends_with_0(java: Path) -> None:
    result = run("--client", "alice/app", "--type", "produce", "--pid", "42")
    assert result.exit_code == 0
    assert arguments(java)[0] == "42"
    assert "FETCH\n" not in result.output


def test_a_broker_is_named_by_its_id(java: Path) -> None:
    run("--client", "alice/app", "--broker-id", "7")
    assert arguments(java)[0] == "broker:7"


@pytest.mark.parametrize(
    ("answer", "words", "remedy"),
    [
        ("error\tnone\t\n", "no broker with quotahost was found", "--pid PID"),
        ("error\tseveral\tpid 1 (broker 1), pid 2 (broker 2)\n", "pid 1 (broker 1), pid 2 (broker 2)",
         "choose: --pid PID"),
        ("error\trefused\tpid 1: denied\n", "can't attach to pid 1: denied", "as the broker's user"),
        ("error\tno-quotahost\t1\n", "no quotahost runs in process 1", "--pid PID"),
        ("error\tno-jvm\t1\n", "process 1 is no JVM", "--pid PID"),
        ("error\tno-jdk\t/opt/jre\n", "the Java in /opt/jre has no module jdk.attach", "set JAVA_HOME to a JDK"),
        ("error\tolder\t1\n", "isn't of this version", "quotahost install"),
        ("error\tsomething\tbroken\n", "the broker can't be asked: broken", "the broker's log"),
        ("broker\t1\t2\n", "isn't of this version", "quotahost install"),
        ("", "it printed nothing", "set JAVA_HOME to a JDK"),
    ],
)  # fmt: skip
def test_an_error_has_a_remedy_and_ends_with_2(java: Path, answer: str, words: str, remedy: str) -> None:
    (java / "answer").write_text(answer)
    result = run("--client", "alice/app")
    assert result.exit_code == 2
    assert words in result.output
    assert remedy in result.output.partition("-> ")[2]


def test_without_java_a_jdk_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(Unanswered, match="there is no java\n  -> set JAVA_HOME to a JDK, 17 or newer"):
        query.java()


def test_a_broker_that_is_not_found_is_named_as_it_was_asked_for() -> None:
    assert str(trouble("none", "", "broker:7")).startswith("no broker 7 with quotahost")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "3,000,000 bytes/s (3M) come in where 2,000,000 bytes/s (2M) are expected; turned back: a, b.c"),
        ({"fence_passes": True, "quotas": (quota(exempt=True),)}, "passed by this client alone: a, b.c"),
        ({"fence_passes": True}, "turned back: a, b.c"),  # a super user
        ({"topics_over": ()}, "no topic is over its own threshold"),
    ],
)
def test_topic_quotas_and_the_topics_over_their_thresholds_are_shown(changes: dict[str, Any], words: str) -> None:
    topics = {"topics_threshold": 2e6, "topics_rate": 3_000_000.4, "topics_over": ("a", "b.c")}
    assert words in dict(common_facts(answer(**(topics | changes))))["topics"]
    assert "topics" not in dict(common_facts(answer()))


def test_the_factor_source_that_answers_is_shown_where_one_stands_in_for_another() -> None:
    assert "source" not in dict(common_facts(answer()))
    assert dict(common_facts(answer(source="cluster-volumes")))["source"] == "cluster-volumes answers"
    second = dict(common_facts(answer(source="snapshots")))["source"]
    assert second == "snapshots answers as the standby, since no record reaches cluster-volumes"


# ---- a volume ----


@pytest.fixture
def volume(java: Path) -> Path:
    """A log directory of the broker that the java answers for."""
    directory = java / "data"
    (directory / "orders-0").mkdir(parents=True)
    (directory / "orders-0" / f"{0:020}.log").write_bytes(b"x" * 100)
    (java / "answer").write_text(
        "broker\t42\t1\nvolumes\tstate\tstate\tOPEN\nvolumes\tstate\tfactor\t1.0\nvolumes\tstate\tcause\t\n"
        f"volumes\tdir\t{directory}\nvolumes\tclient\talice\tapp\t3000.0\n"
    )
    return directory


def test_a_volume_is_named_by_a_log_directory_and_all_are_listed_without_a_name(volume: Path) -> None:
    listed = run("--volume", "--pid", "42")
    assert (listed.exit_code, listed.output.splitlines()[0].split()) == (
        0, ["volume", "capacity", "consumed", "soft", "hard", "factor"],
    )  # fmt: skip
    name = listed.output.splitlines()[1].split()[0]
    for which in (str(volume), name):
        told = run("--volume", which, "--interval", "10ms")
        assert told.exit_code == 0, told.output
        assert f"{name}, with {volume}" in told.output
        assert "\norders " in told.output
        assert "user alice, client-id app" in told.output
        assert "Retention is not known: the broker gave no answer" in told.output
    assert arguments(volume.parent)[-2:] == ["retention", "orders"]


def test_a_volume_that_is_not_there_ends_with_2_and_those_that_are(volume: Path) -> None:
    told = run("--volume", "/dev/nobody")
    assert told.exit_code == 2
    assert "broker 1 has no volume /dev/nobody\n  -> it has: " in told.output
    assert run("--volume", str(volume), "--client", "alice/app").exit_code == 2


def test_a_broker_of_another_version_is_named(volume: Path) -> None:
    (volume.parent / "answer").write_text("broker\t42\t1\n")
    told = run("--volume", str(volume))
    assert told.exit_code == 2
    assert "isn't of this version" in told.output
