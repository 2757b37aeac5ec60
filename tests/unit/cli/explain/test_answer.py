"""Tests how a broker's answer about a client becomes the facts and the sentence that an operator reads."""

from typing import Any

import pytest

from quotahost.broker.host.dump import QuotaState
from quotahost.cli.console import console
from quotahost.cli.explain.answer import Answer, common_facts, limited_by, quota_facts
from quotahost.cli.explain.explain import show
from quotahost.model import Client, LimitedBy, QuotaType
from tests.fakes import dump
from tools.tables import DOCS

PRODUCE, FETCH, REQUEST, MUTATIONS = QuotaType
NOTHING, QUOTA, FLOOR, FACTOR, BY_TOPICS, FENCED = LimitedBy


def quota(**changes: Any) -> QuotaState:
    """Alice's quota of 5 MB/s from the supplier client-quotas; her rate is 1 MB/s."""
    facts: dict[str, Any] = {
        "type": PRODUCE, "user": "alice", "client_id": "", "base": 5e6, "limit": 5e6, "supplier": "client-quotas",
        "rate": 1e6,
    }  # fmt: skip
    return QuotaState(**(facts | changes))


def answer(*quotas: QuotaState, **changes: Any) -> Answer:
    """The answer of broker 1, which enforces quotas, with ordinary values."""
    facts: dict[str, Any] = {
        "pid": 42, "node": "1", "client": Client("alice", "app"), "floors": dump.state()["floors"],
        "clients": 1, "clients_max": 3, "controller": "1", "properties": {"controller.quota.window.num": "100"},
        "quotas": quotas or (quota(),),
    }  # fmt: skip
    return Answer(**(facts | changes))


THROTTLE: dict[str, Any] = {"factor": 0.5, "limit_factor": 0.5, "cause": "broker 2, volume /dev/sdb"}
PAUSE: dict[str, Any] = {"factor": 0.0, "limit_factor": 0.0, "cause": "disk full"}
SHADOW: dict[str, Any] = {"shadow": ("factor",)}
OF_FETCH: dict[str, Any] = THROTTLE | {"factor_types": ("FETCH",), "limit_factor": 1.0}
TOPICS: dict[str, Any] = THROTTLE | {"affected_topics": 3}
LOAD = "this broker's request handlers are 4 % idle (target 30 %)"
BUSY: dict[str, Any] = {"type_factors": {"FETCH": (0.25, LOAD), "PRODUCE": (0.25, LOAD)}, "limit_factor": 0.25}
ORDERS: dict[str, Any] = {
    "affected_topic": "orders", "affected_place": "broker 3, volume /dev/sdb", "slowed": True, "limit": 2.5e6,
}  # fmt: skip
OF_BUDGET: dict[str, Any] = ORDERS | {
    "affected_place": "budget a", "budget_factor": 0.75, "limit": 1.25e6, "bound": FACTOR,
}  # fmt: skip
SLOWED_BY_LOAD: dict[str, Any] = {"bound": FACTOR, "limit": 1.25e6}
FENCE: dict[str, Any] = {"fence_installed": True}
CLOSED: dict[str, Any] = PAUSE | FENCE | {"fence_closed": True}
NEW: dict[str, Any] = {"newcomer": True, "supplier": "", "user": "<newcomers>", "client_id": ""}
WRITES = "since it writes to orders, which has a replica on broker 3, volume /dev/sdb"
BY_LOAD = f"PRODUCE is limited by the factor 0.25, since {LOAD}"
BY_DISK = "PRODUCE is limited by the factor 0.5: broker 2, volume /dev/sdb"


# ---- the sentence on the limit ----

IDLE = "Nothing limits this client now; PRODUCE would first be limited by the user's quota of client-quotas"


@pytest.mark.parametrize(
    ("one", "changes", "sentence"),
    [
        ({"bound": QUOTA, "delay": 20.0, "user": "<group a%20b>", "supplier": "mine"}, {},
         "PRODUCE is limited by the group's quota of mine"),
        ({"bound": QUOTA, "delay": 20.0} | NEW, {}, "PRODUCE is limited by the newcomers' quota"),
        ({"bound": FACTOR, "base": None, "stand_in": 4e6, "uses_stand_in": True, "limit": 2e6, "supplier": ""},
         THROTTLE, BY_DISK),
        ({"bound": FLOOR, "limit": 3.5e4, "floored": True}, PAUSE,
         "PRODUCE is limited by the floor, which the factor 0 has come down to: disk full"),
        ({"type": MUTATIONS, "limit": None}, PAUSE | {"creation_refused": True},
         "CONTROLLER_MUTATION is limited by the PAUSE, in which no topics and partitions are created (disk full)"),
        ({"bound": BY_TOPICS, "rate": None}, {},
         "PRODUCE is limited by topic quotas, which have turned it back in the last 15 s"),
        ({"delay": 20.0}, {}, IDLE),
        ({"base": None, "limit": None, "exempt": True, "supplier": "broker"}, {},
         "Nothing limits this client, as it is exempt from all quotas: it is a broker of this cluster"),
        ({"type": MUTATIONS, "limit": None}, PAUSE | SHADOW | {"creation_refused": True},
         "Nothing limits this client, as it has no limit for CONTROLLER_MUTATION"),
        # The sentence names the smallest of the factors of disks, load and budgets.
        *((SLOWED_BY_LOAD, changes, BY_LOAD) for changes in (
            BUSY, THROTTLE | {"factor": 1.0} | BUSY, TOPICS | {"factor": 0.1, "limit_factor": 0.1} | BUSY)),
        (SLOWED_BY_LOAD | {"type": FETCH}, THROTTLE | BUSY, BY_LOAD.replace("PRODUCE", "FETCH")),
        ({"bound": FACTOR, "limit": 2.5e6, "type": FETCH}, OF_FETCH, BY_DISK.replace("PRODUCE", "FETCH")),
        ({"bound": FACTOR, "limit": 4e6}, THROTTLE | {"factor": 1.0, "limit_factor": 0.8},
         "PRODUCE is limited by the factor 0.8"),
        (OF_BUDGET | {"limit": 2.5e6}, THROTTLE, BY_DISK),
        (OF_BUDGET, BUSY, BY_LOAD),
        (OF_BUDGET | {"limit": 3.75e6}, {},
         "PRODUCE is limited by the factor 0.75, since it writes to orders, which uses the budget a"),
        ({"bound": FACTOR, "limit": 5e5}, BUSY | THROTTLE | {"factor": 0.1, "limit_factor": 0.1},
         BY_DISK.replace("0.5", "0.1")),
        (ORDERS | {"bound": FACTOR}, TOPICS, f"PRODUCE is limited by the factor 0.5, {WRITES}"),
        (ORDERS | {"bound": FENCED}, TOPICS | CLOSED, f"PRODUCE is limited by the fence, {WRITES}"),
        ({}, TOPICS | CLOSED, IDLE),
    ],
)  # fmt: skip
def test_one_sentence_names_what_limits_the_client(one: dict[str, Any], changes: dict[str, Any], sentence: str) -> None:
    found = answer(quota(**one), **changes)
    assert limited_by(found, found.quotas) == sentence


# ---- partition mutations ----


def mutations(**changes: Any) -> QuotaState:
    """Alice's quota of 5 mutations/s; Kafka shows a mean above the quota."""
    bound = QUOTA if (changes.get("tokens") or 0) < 0 else NOTHING
    facts = {"type": MUTATIONS, "base": 5.0, "limit": 5.0, "rate": 18.7, "delay": 9e3, "bound": bound}
    return quota(**(facts | changes))


def test_another_node_names_the_active_controller_and_no_tokens() -> None:
    one = mutations(tokens=500.0)  # auto-creation of topics makes a bucket on each broker and never charges it
    found, who = answer(one, controller="1001"), "node 1001 knows, the active controller"
    assert "measured" not in dict(quota_facts(found, one))
    both = [quota(bound=QUOTA, supplier="static"), quota(type=FETCH, bound=QUOTA, user="<broker>", supplier="static")]
    assert limited_by(found, [*both, one]) == (
        "PRODUCE is limited by the user's quota of static; FETCH is limited by the whole broker's quota of static; "
        f"whether CONTROLLER_MUTATION is limited, {who}"
    )
    without = mutations(base=None, limit=None, supplier="", user="<unlimited>")
    assert limited_by(found, [without]) == "Nothing limits this client, as it has no limit for CONTROLLER_MUTATION"
    assert "tokens" not in dict(quota_facts(found, without))


# ---- facts ----

OVER: dict[str, Any] = {"topics_threshold": 2e6, "topics_rate": 3_000_000.4, "topics_over": ("a", "b.c")}
TRIED: dict[str, Any] = {"shadow": '{"PRODUCE":[0,1e6,"","static"]}'}
ALONE = "supplier static would give 1,000,000 bytes/s (1M), shared by this client alone (user alice, client-id app)"
STANDS: dict[str, Any] = {"base": None, "uses_stand_in": True, "newcomers": 4e6, "limit": 2e6, "supplier": ""}
TOGETHER: dict[str, Any] = {"user": "<unlimited>", "client_id": "", "base": None, "limit": None, "rate": 7.0}
SAVED_UP: dict[str, Any] = {"type": MUTATIONS, "base": 5.0, "limit": 5.0}


def rated(rate: float | None) -> dict[str, Any]:
    return {"would_be_rates": {"PRODUCE": rate}}


@pytest.mark.parametrize(
    ("one", "changes", "label", "words"),
    [
        ({}, THROTTLE | {"limit_factor": 0.75}, "factor",
         "0.5, on PRODUCE; produce limits are multiplied by 0.75 now"),
        ({}, {"cause": "broker 2, volume /dev/sdb"}, "cause", ""),  # the fullest volume doesn't cause a factor of 1
        ({}, {"cause": "fallback.action=OPEN: broker 2: no snapshot"}, "cause", "fallback.action=OPEN"),
        ({}, BUSY, "slowed", f"since {LOAD}: FETCH, PRODUCE by the factor 0.25"),
        ({}, BUSY | SHADOW, "slowed", "FETCH, PRODUCE by the factor 0.25; in shadow"),
        ({}, {"sources": ("cluster-volumes",)}, "source", "cluster-volumes answers"),
        ({}, TOPICS | SHADOW, "scope", "for those who write to 3 affected topics; in shadow"),
        ({}, {}, "fence", "none: in a PAUSE the limits go down to the floor"),
        ({}, CLOSED | {"enforced": False}, "fence", "open, as the factor is in shadow; otherwise this client's"),
        ({}, CLOSED | SHADOW | {"affected_topics": 2}, "fence",
         "open, as the factor is in shadow; otherwise requests to topics on full volumes"),
        ({}, {"enforced": False}, "mode", "shadow: nothing is enforced"),
        ({}, OVER, "topics",
         "3,000,000 bytes/s (3M) come in, 2,000,000 bytes/s (2M) are expected; turned back: a, b.c"),
        ({}, OVER | {"topics_in_shadow": ("b.c",)}, "topics", "turned back: a, b.c (only counted, as it is in shadow)"),
        ({}, OVER | {"topics_over": ()}, "topics", "no topic is over its own threshold"),
        (NEW | {"supplier": "mine"}, {}, "newcomer", "the supplier mine fails for it"),
        (NEW | {"user": "<newcomers a%3Ab>"}, {}, "newcomer", "shares the quota of all client-ids of user a:b"),
        ({"user": "<group team%20a%2F%C3%BC>"}, {}, "quota", "5,000,000 bytes/s (5M), shared by group team a/ü"),
        (ORDERS | {"user": "", "client_id": "app"}, TOPICS, "quota",
         "shared by those who write to affected topics, of client-id app, whatever the user"),
        (ORDERS | {"client_id": "app"}, TOPICS, "quota", "shared by this client alone (user alice, client-id app)"),
        ({"client_id": "<long>"}, {}, "quota", "shared by all client-ids of user alice that are too long"),
        ({"failed": True}, {}, "from", "supplier client-quotas (a supplier fails for this client now; its last"),
        (STANDS, THROTTLE, "from", "no supplier has an answer, so it is unlimited"),
        (STANDS, THROTTLE, "instead", "4,000,000 bytes/s (4M) (the newcomers' rate), as a factor needs a rate"),
        (STANDS | {"stand_in": 4e6}, THROTTLE, "instead", "4,000,000 bytes/s (4M) (measured), as a factor"),
        ({"limit": 1e6 / 3}, {}, "limit", "333,333 bytes/s"),
        ({"type": REQUEST, "base": 200 / 3, "limit": 200 / 3}, {}, "limit", "66.67 %"),
        (OF_BUDGET | {"budget_factor": 0.0}, {}, "limit", "1,250,000 bytes/s (1250K), by the factor 0.25"),
        (OF_BUDGET | STANDS | {"budget_factor": 0.0}, {}, "limit", "2,000,000 bytes/s (2M), by the factor 0.5"),
        ({"type": REQUEST, "rate": 0.1, "delay": 4e3}, {}, "measured", "0.1 %, recently delayed by 4,000 ms"),
        *((SAVED_UP | {"tokens": left}, {}, "tokens", words) for left, words in (
            (-45.01, "-45.01 of 500 left: Kafka refuses mutations for another 9.1 s"),
            (0.0, "0 of 500 left: Kafka admits mutations"), (None, "500 of 500 left: Kafka admits mutations"))),
        (TOGETHER, {}, "measured", "only together with all other clients without a limit"),
        (TRIED, rated(1e6), "in shadow", f"{ALONE}; uses 1,000,000 bytes/s (1M); would not be delayed"),
        (TRIED, rated(None), "in shadow", f"{ALONE}; the use isn't measured"),
        ({"rate": 3e6}, THROTTLE | SHADOW, "in shadow",
         "the factor 0.5 would make the limit 2,500,000 bytes/s (2500K); uses 3,000,000 bytes/s (3M); would be"),
        ({}, CLOSED | SHADOW, "in shadow", ""),
        (OF_BUDGET, SHADOW, "budget", "which uses the budget a: it would be slowed by the factor 0.75, but"),
        (OF_BUDGET | {"budget_factor": 0.0}, SHADOW, "budget", "would be turned back, but the factor is in shadow"),
        (OF_BUDGET | {"budget_factor": 0.0}, CLOSED | {"fence_passes": True}, "budget", "let in, as it passes"),
        (OF_BUDGET, SHADOW | THROTTLE | {"factor": 0.8}, "in shadow",
         "the factor 0.75 would make the limit 3,750,000 bytes/s (3750K)"),
        (ORDERS, SHADOW | TOPICS, "in shadow", "the factor 0.5 would make the limit"),
        ({}, SHADOW | TOPICS, "in shadow", ""),
        ({}, SHADOW | BUSY, "in shadow", "the factor 0.25 would make the limit 1,250,000 bytes/s (1250K)"),
        ({"type": FETCH}, SHADOW | THROTTLE, "in shadow", ""),
        ({"base": 5e5, "limit": None}, {"enforced": False}, "in shadow",
         "the quota would be the limit; uses 1,000,000 bytes/s (1M); would be delayed"),
    ],
)  # fmt: skip
def test_each_fact_has_its_words(one: dict[str, Any], changes: dict[str, Any], label: str, words: str) -> None:
    found = answer(quota(**one), **changes)
    facts = [*common_facts(found), *quota_facts(found, found.quotas[0])]
    told = "".join(text for name, text in facts if name == label)
    assert (words in told, bool(told)) == (True, bool(words))


def test_the_document_shows_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    document = (DOCS / "operate.md").read_text()
    slowed = quota(limit=2.5e6, rate=2_471_338.0, delay=412.0, bound=FACTOR)
    assert show(answer(slowed, pid=4242, fence_installed=True, **THROTTLE), PRODUCE, console()) == 0
    printed = capsys.readouterr().out.strip("\n")
    assert f"```console\n$ quotahost explain --client alice/app --type produce\n{printed}\n```" in document
    one = mutations(user="", client_id="terraform", supplier="controller-mutation", tokens=-45.0)
    assert show(answer(one), MUTATIONS, console()) == 0
    assert "\n".join(capsys.readouterr().out.strip("\n").splitlines()[-5:]) in document
