"""Tests that a file for Strimzi's plugin is understood, name by name, and that its secrets are never shown."""

from datetime import timedelta
from pathlib import Path

import pytest

from quotahost.broker.host.broker import HostBroker
from quotahost.broker.host.exemptions import Exemptions
from quotahost.broker.host.messages import Reason
from quotahost.model import Limit, LimitType, State
from quotahost.settings.declaration import PREFIX
from quotahost.settings.strimzi import Translation
from quotahost.units.parse import parse_duration
from tests.fakes.shim import FakeShim
from tests.unit.cli.commands import properties_file, run
from tests.unit.settings.properties import ADMIN, BYTES, FALLBACK, INTERVAL, RATIO, VALIDITY, full, read, refused

BOOTSTRAP = {f"{ADMIN}bootstrap.servers": "localhost:9092"}
SOFT, HARD = "static.storage.soft", "static.storage.hard"
#: The example of the README of 0.2.0.
OF_0_2 = {"static.produce": "1000000", "static.fetch": "1000000", SOFT: "10000000", HARD: "20000000", INTERVAL: "5"}
#: The example of the README of 0.4.0, without its comments.
OF_0_4 = {
    "static.produce": "1000000", "static.fetch": "1000000", **BOOTSTRAP, BYTES: "5368709120", INTERVAL: "5",
    "static.excluded.principal.name.list": "User:principal1;User:principal2",
}  # fmt: skip


def notes(file: dict[str, str]) -> list[str]:
    return [note.text for note in Translation(full(file)).notes]


def warnings(file: dict[str, str]) -> list[str]:
    return [note.text for note in Translation(full(file)).notes if note.warns]


@pytest.mark.parametrize(
    ("limit", "text", "free"),
    [
        (BYTES, "1", 1), (BYTES, "+5", 5), (BYTES, " 5368709120 ", 5368709120), (BYTES, "0", 0), (RATIO, "0.0", 0),
        (RATIO, "0.05", 5 * 10**10), (RATIO, "5e-2", 5 * 10**10), (RATIO, "1", 10**12), (RATIO, "0", 0),
        (RATIO, "1e-300", 1),
    ],
)  # fmt: skip
def test_their_limit_is_the_hard_one_by_what_is_free_and_lets_log_dirs_look(limit: str, text: str, free: int) -> None:
    settings = read({limit: text})
    assert settings.static.storage.hard_limit is not None
    assert settings.static.storage.hard_limit.consumed_at(10**12) == 10**12 - free, "the volume has a terabyte"
    assert settings.factor_source == "log-dirs"


OPEN, PAUSE = State.OPEN, State.PAUSE
DEFAULT = "its default, 1.0, read as fallback.action=OPEN"
OFF = "disks are not protected"


@pytest.mark.parametrize(
    ("file", "interval", "action", "validity", "warning"),
    [
        # In a file with Strimzi's limits, a missing property has Strimzi's default.
        ({BYTES: "1"}, "60s", OPEN, "5m", DEFAULT),
        (OF_0_4, "5s", OPEN, "5m", DEFAULT),
        (BOOTSTRAP, "", OPEN, "1m", ""),
        # Strimzi's fallback becomes one of two actions.
        *(({BYTES: "1", FALLBACK: text}, "60s", action, "5m", warning) for text, action, warning in (
            ("1.0", OPEN, ""), ("1", OPEN, ""), ("0", PAUSE, ""), ("0.0", PAUSE, ""), ("0.5", PAUSE, FALLBACK),
            ("0.999", PAUSE, FALLBACK))),
        (OF_0_4 | {FALLBACK: "0.0"}, "5s", PAUSE, "5m", ""),
        # An interval of 0 or less turns protection off.
        *((file | {INTERVAL: text}, "", OPEN, "1m", warning) for text in ("0", "-1") for file, warning in (
            ({BYTES: "1"}, OFF), (OF_0_2, OFF), (OF_0_4, OFF), ({}, OFF), ({"factor.source": ""}, OFF))),
        # A property of quotahost's takes precedence over a default of Strimzi's.
        ({BYTES: "1", "fallback.action": "PAUSE", "validity": "30s", "plugin.log-dirs.interval": "5s"}, "5s", PAUSE,
         "30s", ""),
    ],
)  # fmt: skip
def test_what_a_file_means(file: dict[str, str], interval: str, action: State, validity: str, warning: str) -> None:
    settings = read(file)
    source = ("log-dirs", "limits", {"log-dirs": {"interval": interval}}) if interval else (None, None, {})
    assert (settings.factor_source, settings.policy, settings.plugin) == source
    assert (settings.fallback_action, settings.validity) == (action, parse_duration(validity))
    assert [warning in each for each in warnings(file)] == [True] * bool(warning)


@pytest.mark.parametrize(
    "file",
    [
        *({BYTES: "10", f"{HARD}{kind}": text} for kind, text in (
            (".min-free-bytes", "11"), (".min-free-bytes", "10K"), (".min-free-percent", "0.1"), ("", "10"))),
        {RATIO: "0.1", f"{HARD}.min-free-percent": "20%"}, {RATIO: "0.1", f"{HARD}.min-free-bytes": "10"},
        {INTERVAL: "60", "plugin.log-dirs.interval": "61s", "factor.source": "log-dirs"},
        {INTERVAL: "0", "factor.source": "local"}, {FALLBACK: "1.0", "fallback.action": "PAUSE"},
        {FALLBACK: "0.5", "fallback.action": "OPEN"}, {VALIDITY: "PT5M", "validity": "300s"},
    ],
)  # fmt: skip
def test_a_name_of_theirs_beside_one_of_ours_is_refused_and_both_are_named(file: dict[str, str]) -> None:
    message = refused(file)
    theirs, ours, *_ = file
    assert message.startswith(f"{PREFIX}{theirs}={file[theirs]}: "), "the contradiction is the only error"
    assert f"{PREFIX}{ours}={file[ours]}" in message
    assert "keep one" in message
    read({BYTES: "10000", "static.storage.hard": "none"})  # "none" contradicts nothing
    both = refused({BYTES: "1", RATIO: "0.1"})
    assert (PREFIX + BYTES in both, PREFIX + RATIO in both) == (True, True), "both properties are named, as above"


@pytest.mark.proves("proposal-035.properties-old", "proposal-035.consumed-limits", "proposal-035.fallback")
def test_a_file_of_0_2_follows_proposal_035_and_looks_at_its_own_disks() -> None:
    settings = read(OF_0_2)
    soft, hard = (Limit(LimitType.CONSUMED_BYTES, level) for level in (10_000_000, 20_000_000))
    assert (settings.static.storage.soft_limit, settings.static.storage.hard_limit) == (soft, hard)
    assert (settings.factor_source, settings.policy) == ("local", "limits")
    assert settings.fallback_action is State.PAUSE
    assert settings.validity == timedelta(minutes=1), "Strimzi's 0.2 has no validity, so quotahost's applies"
    for action in ({FALLBACK: "1.0"}, {"fallback.action": "OPEN"}):
        assert read(OF_0_2 | action).fallback_action is State.OPEN
    for more in ({VALIDITY: "PT2M"}, {**BOOTSTRAP, "factor.source": "log-dirs"}, {SOFT: "none", HARD: "1G"}):
        assert read(OF_0_2 | more).fallback_action is State.PAUSE, "other Strimzi properties don't change the fallback"
    assert warnings(OF_0_2) == []
    assert f"{INTERVAL}=5 is not used: factor.source is not log-dirs" in notes(OF_0_2)


def test_doctor_shows_what_each_means_here_and_where_ours_come_from(tmp_path: Path) -> None:
    lines = {"class": "org.quotahost.PythonQuotaCallback", INTERVAL: "60", BYTES: "1", FALLBACK: "0.5"}
    file = properties_file(tmp_path, "".join(f"{name}={text}\n" for name, text in full(lines).items()))
    output = run("doctor", file).output
    assert f"--    {INTERVAL}=60 read as plugin.log-dirs.interval=60s" in output
    assert f"weak  {FALLBACK}=0.5 read as fallback.action=PAUSE" in output
    row = next(line for line in output.splitlines() if line.startswith("fallback.action "))
    assert row.split()[-1] == PREFIX + FALLBACK


def test_notes_are_lines_that_name_our_scope() -> None:
    forged = {"static.produce": "1\nERROR forged", f"{ADMIN}x\nERROR forged": "1", **BOOTSTRAP}
    assert not any("\n" in note for note in notes(forged))
    (note, unused, _) = notes({"static.produce": "1000", "static.kafka.clientIdPrefix": "a", **BOOTSTRAP})
    assert note == "static.produce=1000: For all clients of a broker together, or as `static.scope` says."
    assert unused.startswith("static.kafka.clientIdPrefix=a: Not used")


def client_config(file: dict[str, str]) -> dict[str, str]:
    return HostBroker(FakeShim(), read(file)).client_config()


def test_their_client_is_the_plugins_client_and_our_own_wins_as_a_whole_or_setting_by_setting() -> None:
    theirs = {**BOOTSTRAP, f"{ADMIN}security.protocol": "SSL", f"{ADMIN}client.id": "theirs"}
    assert client_config(theirs) == {
        "bootstrap.servers": "localhost:9092", "security.protocol": "SSL", "ssl.ca.pem": "CA of 0",
        "client.id": "quotahost-1",
    }  # fmt: skip
    ours = client_config({**theirs, "kafka.bootstrap.servers": "other:1"})
    assert ours == {"bootstrap.servers": "other:1", "client.id": "quotahost-1"}
    named = client_config({"kafka.bootstrap.servers": "other:1", "kafka.client.id": "mine"})
    assert named == ours, "kafka.client.id is ignored: without authentication, the fence checks the client-id"
    assert any("Not used: kafka.bootstrap" in note for note in notes({**theirs, "kafka.bootstrap.servers": "other:1"}))
    assert client_config({**theirs, "kafka.security.protocol": "PLAINTEXT"})["security.protocol"] == "PLAINTEXT"
    addressless = client_config({f"{ADMIN}security.protocol": "SSL"})
    assert addressless["bootstrap.servers"] == "127.0.0.1:1", "if Strimzi's address is missing, this broker's is used"


def test_the_user_of_their_client_is_exempt_where_it_is_the_plugins_client() -> None:
    file = {**BOOTSTRAP, f"{ADMIN}sasl.jaas.config": r'a.B required username="m\"e" password="p";'}
    assert Exemptions(read(file), {"node.id": "1"}).principals == {'m"e': Reason.PLUGIN}
    unused = read({**file, "kafka.bootstrap.servers": "other:1"})
    assert Exemptions(unused, {"node.id": "1"}).principals == {}
