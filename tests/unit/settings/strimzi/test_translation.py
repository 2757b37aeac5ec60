"""A broker's file written for Strimzi's plugin is understood, name by name."""

from datetime import timedelta

import pytest

from quotahost.model import Limit, LimitType, State
from quotahost.settings.declaration import PREFIX
from quotahost.settings.strimzi import translate
from tests.unit.settings.strimzi.files import (
    ADMIN,
    BOOTSTRAP,
    BYTES,
    FALLBACK,
    INTERVAL,
    RATIO,
    SECRET,
    VALIDITY,
    full,
    notes,
    read,
    refused,
    warnings,
)


def test_a_whole_file_of_strimzi_s_means_what_it_meant() -> None:
    settings = read(
        {
            "class": "org.quotahost.PythonQuotaCallback",
            "static.produce": "1000000",
            "static.fetch": "2.0E6",
            "static.request": "200.0",
            "static.excluded.principal.name.list": "User:a;User:CN=b,OU=c",
            BYTES: "5368709120",
            INTERVAL: "30",
            FALLBACK: "0.0",
            VALIDITY: "PT10M",
            **BOOTSTRAP,
        }
    )
    static = settings.static
    assert (static.produce, static.fetch, static.request, static.scope) == (1e6, 2e6, 200, "broker")
    assert settings.excluded_principals == ("a", "CN=b,OU=c")
    assert settings.storage_hard == Limit(LimitType.MIN_FREE_BYTES, 5368709120)
    assert settings.storage_soft is None
    assert (settings.factor_source, settings.policy) == ("log-dirs", "limits")
    assert settings.plugin == {"log-dirs": {"interval": "30s"}}
    assert settings.fallback_action is State.PAUSE
    assert settings.validity == timedelta(minutes=10)
    assert settings.kafka_admin["bootstrap.servers"].get_secret_value() == "localhost:9092"


def test_without_strimzi_s_names_nothing_changes_and_there_is_no_note() -> None:
    ours = full({"static.produce": "1M", "static.storage.hard": "10G", "shadow": "all"})
    translation = translate(ours)
    assert (translation.properties, translation.notes, translation.problems) == (ours, [], [])


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (BYTES, "1", Limit(LimitType.MIN_FREE_BYTES, 1)),
        (BYTES, "+5", Limit(LimitType.MIN_FREE_BYTES, 5)),
        (BYTES, " 5368709120 ", Limit(LimitType.MIN_FREE_BYTES, 5368709120)),
        (RATIO, "0.05", Limit(LimitType.MIN_FREE_PERCENTAGE, 5.0)),
        (RATIO, "5e-2", Limit(LimitType.MIN_FREE_PERCENTAGE, 5.0)),
        (RATIO, "1", Limit(LimitType.MIN_FREE_PERCENTAGE, 100.0)),
    ],
)
def test_their_limit_is_the_hard_one_and_lets_log_dirs_look(name: str, text: str, expected: Limit) -> None:
    settings = read({name: text})
    assert settings.storage_hard == expected
    assert settings.factor_source == "log-dirs"


@pytest.mark.parametrize("limit", [{BYTES: "0"}, {RATIO: "0"}, {RATIO: "0.0"}, {RATIO: "1e-300"}])
def test_a_limit_of_nothing_is_reached_when_a_volume_is_full_and_not_before(limit: dict[str, str]) -> None:
    hard = read(limit).storage_hard
    assert hard is not None
    terabyte = 10**12
    assert hard.consumed_at(terabyte) == terabyte - (1 if "1e-300" in limit.values() else 0)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (BYTES, "10G", "whole number of bytes"),
        (BYTES, "-1", "from 0"),
        (BYTES, "", "whole number of bytes"),
        (BYTES, str(2**63), "from 0"),
        (RATIO, "1.1", "from 0 to 1"),
        (RATIO, "5%", "from 0 to 1"),
        (RATIO, "nan", "from 0 to 1"),
        (INTERVAL, "60s", "whole number of seconds"),
        (INTERVAL, "1.5", "whole number of seconds"),
        (FALLBACK, "2", "from 0 to 1"),
        (FALLBACK, "OPEN", "from 0 to 1"),
        (VALIDITY, "5", "PT5M"),
        (VALIDITY, "PT0S", "PT5M"),
    ],
)
def test_the_error_of_a_wrong_value_has_the_name_and_value_that_the_operator_wrote(
    name: str, text: str, words: str
) -> None:
    message = refused({BYTES: "1", name: text} if name != RATIO else {name: text})
    assert message.startswith(f"{PREFIX}{name}={text or repr('')}: ")
    assert words in message
    assert "\n" not in message


def test_one_error_lists_problems_with_strimzi_s_names_and_with_ours() -> None:
    message = refused({INTERVAL: "x", FALLBACK: "y", "shadow": "z", BYTES: "1"})
    assert message.startswith("3 problems:")


def test_both_limits_are_an_error_as_there() -> None:
    message = refused({BYTES: "1", RATIO: "0.1"})
    assert PREFIX + BYTES in message
    assert PREFIX + RATIO in message


@pytest.mark.parametrize("text", ["0", "-1"])
def test_an_interval_of_nothing_turns_protection_off(text: str) -> None:
    settings = read({INTERVAL: text, BYTES: "1"})
    assert (settings.factor_source, settings.policy, settings.plugin) == (None, None, {})
    assert settings.fallback_action is State.OPEN
    (warning,) = warnings({INTERVAL: text, BYTES: "1"})
    assert "disks are not protected" in warning
    assert warnings({INTERVAL: text}) == [], "without a limit nothing was protected there either"


@pytest.mark.parametrize("text", ["1", "60", "2147483647"])
def test_any_interval_above_is_that_of_log_dirs(text: str) -> None:
    assert read({INTERVAL: text, BYTES: "1"}).plugin == {"log-dirs": {"interval": f"{text}s"}}


def test_where_another_source_looks_at_the_disks_a_note_says_that_the_interval_is_not_used() -> None:
    file = {INTERVAL: "60", BYTES: "1", "factor.source": "local"}
    assert (read(file).factor_source, read(file).plugin) == ("local", {})
    assert f"{INTERVAL}=60 is not used: factor.source is local" in notes(file)
    assert f"{INTERVAL}=60 is not used: there is no factor.source" in notes({INTERVAL: "60"})


@pytest.mark.parametrize(
    ("text", "action", "warns"),
    [
        ("1.0", State.OPEN, False),
        ("1", State.OPEN, False),
        ("0", State.PAUSE, False),
        ("0.0", State.PAUSE, False),
        ("0.5", State.PAUSE, True),
        ("0.999", State.PAUSE, True),
    ],
)
def test_their_fallback_factor_is_open_or_pause(text: str, action: State, warns: bool) -> None:
    file = {FALLBACK: text, BYTES: "1"}
    assert read(file).fallback_action is action
    assert any(FALLBACK in warning for warning in warnings(file)) == warns


def test_a_property_that_strimzi_s_file_leaves_out_has_strimzi_s_default() -> None:
    settings = read({BYTES: "1"})
    assert settings.fallback_action is State.OPEN
    assert settings.validity == timedelta(minutes=5)
    assert settings.plugin == {"log-dirs": {"interval": "60s"}}
    (warning,) = warnings({BYTES: "1"})
    assert "fallback.action=OPEN" in warning
    assert "weaker than PAUSE" in warning


def test_a_property_of_ours_comes_before_strimzi_s_default() -> None:
    file = {BYTES: "1", "fallback.action": "PAUSE", "validity": "30s", "plugin.log-dirs.interval": "5s"}
    settings = read(file)
    assert settings.fallback_action is State.PAUSE
    assert settings.validity == timedelta(seconds=30)
    assert settings.plugin == {"log-dirs": {"interval": "5s"}}
    assert warnings(file) == []


def test_without_a_limit_of_theirs_no_disk_is_looked_at() -> None:
    settings = read({**BOOTSTRAP, "static.produce": "1000000"})
    assert (settings.factor_source, settings.validity) == (None, timedelta(minutes=1))
    assert warnings(BOOTSTRAP) == []


@pytest.mark.parametrize(
    "properties",
    [
        {BYTES: "10", "static.storage.hard.min-free-bytes": "11"},
        {BYTES: "10", "static.storage.hard.min-free-percent": "0.1"},
        {BYTES: "10", "static.storage.hard": "10"},
        {RATIO: "0.1", "static.storage.hard.min-free-percent": "20%"},
        {RATIO: "0.1", "static.storage.hard.min-free-bytes": "10"},
        {INTERVAL: "60", "plugin.log-dirs.interval": "61s", "factor.source": "log-dirs"},
        {INTERVAL: "0", "factor.source": "local"},
        {FALLBACK: "1.0", "fallback.action": "PAUSE"},
        {FALLBACK: "0.5", "fallback.action": "OPEN"},
        {VALIDITY: "PT5M", "validity": "1m"},
        {VALIDITY: "PT5M", "validity": "300s"},
        {BYTES: "10000", "static.storage.hard.min-free-bytes": "10K"},
    ],
)
def test_a_name_of_theirs_beside_one_of_ours_for_the_same_thing_is_refused_and_both_are_named(
    properties: dict[str, str],
) -> None:
    message = refused(properties)
    theirs, ours, *_ = properties
    assert f"{PREFIX}{theirs}={properties[theirs]}: " in message
    assert f"{PREFIX}{ours}={properties[ours]}" in message
    assert "keep one" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "properties", [{BYTES: "10000", "static.storage.hard": "none"}, {INTERVAL: "0", "factor.source": ""}]
)
def test_a_property_of_ours_that_says_none_contradicts_nothing(properties: dict[str, str]) -> None:
    read(properties)


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("static.storage.check-intervall", INTERVAL),
        ("static.storage.per.volume.limit.min.available.byte", BYTES),
        ("static.throttle.factor.fallbak", FALLBACK),
    ],
)
def test_the_error_of_an_unknown_name_suggests_strimzi_s(name: str, like: str) -> None:
    assert refused({name: "1"}) == f"{PREFIX}{name}: unknown property; did you mean {PREFIX}{like}?"


@pytest.mark.parametrize("name", ["static.kafka.admin", "static.kafka.admin."])
def test_their_client_s_family_without_a_setting_s_name_is_refused(name: str) -> None:
    assert refused({name: SECRET}).startswith(f"{PREFIX}{name}: is incomplete; write {PREFIX}{ADMIN}NAME")
