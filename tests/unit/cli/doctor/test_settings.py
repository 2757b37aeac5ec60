"""``quotahost doctor``: a broker's properties, and those that work and protect less than they seem to."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from quotahost.cli.console import Finding, Level
from quotahost.cli.doctor.settings import check_weaknesses
from quotahost.kafka.listeners import Listeners
from quotahost.settings.declaration import PREFIX
from tests.unit.cli.commands import broker_file

Found = Callable[..., list[Finding]]

EVEN = "quota.window.num=2"
CLOSED = "listeners=SASL_SSL://:9092"
FENCE = "authorizer.class.name=org.quotahost.QuotaFence"
TOTAL = "topics.total.bytes.in.per.sec.threshold"


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ("", ["PLAINTEXT"]),
        ("listeners=SASL_SSL://:9092,SASL_PLAINTEXT://:9093", []),
        ("listeners=SSL://:9092", ["SSL"]),
        ("listeners=SSL://:9092\nssl.client.auth=required", []),
        ("listeners=A://:1,B://:2\nlistener.security.protocol.map=A:SSL,B:SSL\n"
         "ssl.client.auth=required\nlistener.name.b.ssl.client.auth=requested", ["B"]),
        ("listeners=in://:1,ctl://:2\nlistener.security.protocol.map=IN:SASL_SSL,CTL:PLAINTEXT\n"
         "controller.listener.names=CTL", []),
    ],
)  # fmt: skip
def test_listeners_on_which_everybody_is_anonymous(tmp_path: Path, properties: str, expected: list[str]) -> None:
    assert Listeners(broker_file(tmp_path, properties).properties).unauthenticated() == expected


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["listeners=PLAINTEXT://:9092"], "nobody authenticates on PLAINTEXT, and no principal is excluded"),
        (["listeners=PLAINTEXT://:9092", ".exempt.principals=ANONYMOUS"], "nobody there is throttled"),
        ([".metrics.port=0.0.0.0:9404"], "metrics are served on 0.0.0.0"),
        ([".clients.idle=59m"], "clients.idle is below the hour"),
        ([".newcomers.controller-mutation=unlimited"], "newcomers are unlimited (controller-mutation)"),
        ([FENCE, ".factor.source=fixed", ".fallback.action=OPEN"], "fallback.action is OPEN"),
        ([FENCE, ".factor.source=fixed", ".validity=500ms"], "validity is not above twice factor.interval"),
        ([FENCE, ".factor.source=fixed", ".static.storage.hard.min-free-percent=0.0"], "leaves nothing free"),
        ([FENCE, ".factor.source=local", ".static.storage.overrides=/d hard.min-free-bytes=0"], "nothing free"),
        ([".policy=p"], "a policy is named, but no factor.source"),
        ([".shadow=all"], "nothing is enforced"),
        ([".shadow=topics,factor"], "in shadow, and so not enforced: factor, topics"),
        ([".supplier=static"], "nobody is throttled"),
        ([".supplier=mine", ".static.fetch=1M"], "the supplier static is not named"),
        ([f".{TOTAL}=10M"], "the broker's authorizer is not the fence"),
        (
            [FENCE, f".{TOTAL}=10M", f".{TOTAL.replace('total.', '')}=a:4M,b:6M"],
            "topics without a threshold take nothing",
        ),
    ],
)
def test_each_weakness_is_found_once_with_a_remedy(found: Found, lines: list[str], words: str) -> None:
    (weak,) = found(
        check_weaknesses, EVEN, "super.users=User:a", *([] if "listeners" in lines[0] else [CLOSED]), *lines
    )
    assert (weak.level, words in weak.text, bool(weak.remedy)) == (Level.WEAK, True, True)


@pytest.mark.parametrize("between", ["IN:SASL_SSL", "IN:SSL\nssl.client.auth=requested"])
def test_clients_that_do_not_authenticate_are_no_weakness_where_brokers_do(found: Found, between: str) -> None:
    listeners = "listeners=OPEN://:1,IN://:2\ninter.broker.listener.name=IN"
    assert not found(check_weaknesses, EVEN, listeners, f"listener.security.protocol.map=OPEN:PLAINTEXT,{between}")


def test_listeners_that_a_config_provider_supplies_are_not_judged(found: Found) -> None:
    assert not found(check_weaknesses, EVEN, "config.providers=env", "listeners=${env:LISTENERS}")


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "::1", "127.1.2.3"])
def test_metrics_on_loopback_are_not_weak(found: Found, address: str) -> None:
    assert not found(check_weaknesses, EVEN, CLOSED, f".metrics.port={address}:9404")


@pytest.mark.parametrize(
    ("properties", "words", "remedy"),
    [
        ("", "11 windows of 1 s: an eager client gets 11 s of its quota at once, and then next to nothing for 10 s",
         EVEN),
        ("quota.window.num=5", "gets 5 s of its quota at once, and then next to nothing for 4 s", EVEN),
        (f"{EVEN}\nquota.window.size.seconds=30", "60 s of its quota at once, and then next to nothing for 30 s",
         f"{EVEN} and quota.window.size.seconds=1"),
        ("process.roles=broker,controller", "gets 11 s of its quota at once", EVEN),
        (EVEN, "", ""),
        ("quota.window.num=1", "", ""),
        ("process.roles=controller", "", ""),  # it has no producers
        ("quota.window.num=x", "", ""),
    ],
)  # fmt: skip
def test_many_windows_are_weak_for_an_eager_client(found: Found, properties: str, words: str, remedy: str) -> None:
    weak = [each for each in found(check_weaknesses, properties) if each.text.startswith("quotas are measured")]
    expected = [(Level.WEAK, True, remedy)] if words else []
    assert [(each.level, words in each.text, each.remedy) for each in weak] == expected


ON: Final = "remote.log.storage.system.enable=true"
LISTENER: Final = "remote.log.metadata.manager.listener.name="
CLIENT: Final = "rlmm.config.remote.log.metadata.common.client."
SECRET: Final = "hunter2"
SECURED: Final = (
    ON,
    f"{LISTENER}B",
    "listener.security.protocol.map=B:SASL_PLAINTEXT,OPEN:PLAINTEXT,TLS:SSL",
    "inter.broker.listener.name=B",
    "sasl.mechanism.inter.broker.protocol=PLAIN",
    f'listener.name.b.plain.sasl.jaas.config=PlainLoginModule required username="broker" password="{SECRET}";',
)
UNKNOWN: Final = "can't be found in this file"
ANONYMOUS: Final = "connects as ANONYMOUS, while brokers authenticate"


def login(user: str, prefix: str = CLIENT) -> list[str]:
    jaas = f'PlainLoginModule required password="{SECRET} username=x" username="{user}";'
    return [f"{prefix}sasl.mechanism=PLAIN", f"{prefix}sasl.jaas.config={jaas}"]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([*SECURED[1:], *login("tiering")], ""),  # no tiered storage
        ([ON], ""),  # anonymous brokers
        ([ON, f"{LISTENER}PLAINTEXT"], ""),
        ([*SECURED, *login("broker")], ""),  # the brokers' own user
        ([*SECURED, ".static.excluded.principal.name.list=User:tiering", *login("tiering")], ""),
        ([*SECURED, *login("tiering")], "logs in as tiering, which is not exempt"),
        ([*SECURED, *login("tiering", "rlmm.config.remote.log.metadata.producer.")], "logs in as tiering, which is"),
        ([*SECURED, "remote.log.metadata.manager.impl.prefix=mine.",
          *login("tiering", "mine.remote.log.metadata.common.client.")], "logs in as tiering"),
        ([*SECURED, f'{CLIENT}sasl.jaas.config=Krb5LoginModule required principal="tiering/host@REALM";'],
         "logs in as tiering, which"),
        ([*SECURED], UNKNOWN),
        ([*SECURED, f"{LISTENER}TLS", f"{CLIENT}security.protocol=SSL", "ssl.client.auth=required"], UNKNOWN),
        ([*SECURED, f"{LISTENER}OPEN"], ANONYMOUS),
        ([*SECURED, f"{LISTENER}TLS"], ANONYMOUS),
        ([*SECURED, LISTENER], ANONYMOUS),
    ],
)  # fmt: skip
def test_tiered_storages_client_is_named_if_a_quota_slows_it(found: Found, lines: list[str], words: str) -> None:
    weak = [finding for finding in found(check_weaknesses, *lines) if "__remote_log_metadata" in finding.text]
    assert [words in finding.text for finding in weak] == ([True] if words else [])
    assert SECRET not in str(weak)
    if "logs in as" in words:
        assert weak[0].remedy == f"add User:tiering to {PREFIX}static.excluded.principal.name.list"
