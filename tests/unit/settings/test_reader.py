"""Tests refused properties: each error names the property, the value and a right value, and shows no secret."""

import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotahost.base.text import printable
from quotahost.settings.broker import describe
from quotahost.settings.declaration import PREFIX, SettingsError
from quotahost.settings.strimzi import Translation
from tests.unit.settings.properties import ADMIN, BYTES, FALLBACK, INTERVAL, NAMES, RATIO, VALIDITY, full, read, refused


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("static.excluded.principal.name.list", "Group:a", "write User:Group:a"),
        ("static.excluded.principal.name.list", "User:", "write User:name"),
        ("static.excluded.principal.name.list", "User:*", "list each principal"),
        ("supplier", "", "name at least one supplier"),
        ("supplier", "a,,b", "empty name"),
        ("supplier", "a,b,a", "'a' twice; remove one"),
        ("tasks", "a b", "write letters, digits"),
        ("factor.source", "a.b", "is not one entry point name"),
        ("supplier", "[static,a]", "only kafka-configs.sh takes brackets"),
        ("static.produce", "10MB", "unknown unit 'MB'"),
        ("static.produce", "", "or unlimited"),
        ("validity", "999ms", "must be at least 1s"),
        ("clients.idle", "3600", "write 3600s for seconds"),
        ("fallback.action", "CLOSE", "none of PAUSE, OPEN"),
        ("factor.quota.types", "", "name at least one quota type"),
        ("shadow", "factr", "did you mean factor?"),
        ("shadow", "static", "write one of these"),
        ("static.excluded.principal.name.list", "User:a,User:b", "two principals; separate them by ;"),
        ("shadow", "supplier.", "supplier. without a name; write all, factor, topics, topic.NAME, supplier.NAME"),
        ("shadow", "factor,", "has an empty entry"),
        ("shadow", "supplier.statc", "did you mean supplier.static?"),
        ("shadow", "supplier.zzz", f"or name the supplier in {PREFIX}supplier"),
        ("metrics.port", "0.0.0.0:x", "or ADDRESS:PORT"),
        ("metrics.clients", "-1", "greater than or equal to 0"),
        ("metrics.clients", "11K", "valid integer"),
        ("python.executable", " ", "at least 1 character"),
        ("topics.prefix", "a b", ": must match pattern"),
        ("static.scope", "x\nERROR forged line", r"x\nERROR forged line"),
        # Names of Strimzi's plugin.
        *((BYTES, text, "whole number of bytes from 0") for text in ("10G", "", "-1", str(2**63), 5_000 * "9")),
        *((RATIO, text, "from 0 to 1") for text in ("1.1", "5%", "nan")),
        *((INTERVAL, text, "whole number of seconds") for text in ("60s", "1.5")),
        *((FALLBACK, text, "from 0 to 1") for text in ("2", "OPEN")),
        *((VALIDITY, text, "PT5M") for text in ("5", "PT0S")),
        *(("static.storage.overrides", text, words) for text, words in (
            ("/d hard=9223372036854775808", "at most 9223372036854775807 bytes"),
            *((entry, "which is no volume with its limits; write /dev/sdb") for entry in (
                "/a", "hard=5", "/a hrad=5", "/a hard=5 more", "/a hard = 5", "/a hard=5 hard=6", "/a overrides=5")),
            ("/a hard=fast", "has the entry '/a hard=fast': hard is not a number; write"),
            ("/a soft.min-free-percent=10", "must be from 0 to 1; write 0.05 or 5%"),
            ("/a hard=none", "a limit can't be taken away, only changed"),
            ("/a hard=5 hard.min-free-bytes=5", "are both set; give one hard limit"),
            ("/a hard=5; /b hard=5; /a/ soft=1", "has '/a/' twice; write its limits in one entry"),
            ("/a soft=9 hard=5", "'/a soft=9 hard=5': the hard limit ConsumedBytes 5 bytes is reached"),
            ("/a soft.min-free-percent=5% hard.min-free-percent=6%", "MinFreePercentage 6 % is reached before"),
            ("/a soft.min-free-bytes=5 hard.min-free-bytes=9", "let the hard limit be reached after the soft one"))),
        ("static.scope", "a" * 30_000, "is none of client, user, client-id, broker; write one of these"),
        # Each text would take minutes if the time grew with the square of the text's length.
        ("static.storage.soft.min-free-percent", 1_000_000 * "1" + "x", "is not a share; write 0.05 or 5%"),
        ("validity", "PT" + 1_000_000 * "1", "is not a duration; write"),
        ("clients.idle", 900_000 * "9" + "d", "must be from 1ms to 36500d; write"),
        ("shadow", ",".join(f"topic.t{n}" for n in (*range(200_000), 0)), "has 'topic.t0' twice; remove one"),
    ],
)  # fmt: skip
def test_the_error_of_a_wrong_value_names_property_value_and_remedy(name: str, text: str, words: str) -> None:
    message = refused({name: text})
    assert message.startswith(f"{PREFIX}{name}={printable(text)}: ")
    assert words in message
    assert "\n" not in message
    assert len(message) < 1500, "the error is short enough for the log and an administrator"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        *(({name: "1"}, f"{PREFIX}{name}: unknown property; did you mean {PREFIX}{like}?") for name, like in (
            ("static.produc", "static.produce"), ("factor.sorce", "factor.source"), ("suppliers", "supplier"),
            ("newcomers.controller.mutation", "newcomers.controller-mutation"),
            ("static.storage.check-intervall", INTERVAL), (BYTES[:-1], BYTES),
            ("static.throttle.factor.fallbak", FALLBACK))),
        ({"xyzzy": "1"}, "`quotahost properties` lists all"),
        ({"any\nname": "1"}, r"any\nname"),
        *(({name: "x"}, f"{PREFIX}{name}: is incomplete; write {PREFIX}")
          for name in ("kafka", "kafka.", "plugin", "plugin.", "plugin.static", "plugin.static.", ADMIN[:-1], ADMIN)),
        ({"supplier": "mine", "plugin.mien.a": "1", "plugin.mien.b": "1"},
         f"{PREFIX}plugin.mien.*: no configured plugin is named 'mien'; one is named 'mine': "
         "correct the name if it is misspelt, else remove"),
        ({"supplier": "mine", "plugin.zzz.a": "1"}, "(now: mine)"),
        ({"supplier": "x, mine", "mine.rate": "1"}, f"did you mean {PREFIX}plugin.mine.rate?"),
        # Two properties together are wrong.
        ({"static.storage.soft": "1M", "static.storage.hard": "5M", "static.storage.hard.min-free-percent": "5%"},
         f"{PREFIX}static.storage.hard=5M: static.storage.hard and static.storage.hard.min-free-percent are both set"),
        ({"static.storage.soft": "9M", "static.storage.hard": "5M"},
         f"{PREFIX}static.storage.soft=9M: the hard limit "),
    ],
)  # fmt: skip
def test_the_error_of_an_unknown_property_names_the_nearest_or_where_all_are_that_of_two_properties_one_of_them(
    given: dict[str, str], words: str
) -> None:
    message = refused(given)
    assert words in message
    assert "\n" not in message


def test_one_error_lists_all_problems_and_nothing_else() -> None:
    message = refused({"static.produce": "x", "validity": "30", "nonsense": "1", "plugin.x": "1", "shadow": "all"})
    lines = message.splitlines()
    assert lines[0] == "4 problems:"
    for name in ("static.produce", "validity", "nonsense", "plugin.x"):
        assert sum(f"- {PREFIX}{name}" in line for line in lines) == 1, name


TEXTS = st.sampled_from(
    ["", "1", "10M", "30s", "PT1M", "unlimited", "a,b", "a,a", "PAUSE", "User:a;b", "shadow", "client", "9404", "nan"]
) | st.text(max_size=20)
TAILS = st.text(max_size=8) | st.sampled_from(["x.y", "static.rate", "sasl.password"])
ANY_NAME = (
    st.sampled_from(NAMES)
    | st.builds(lambda name, tail: name + tail, st.sampled_from(NAMES), TAILS)
    | st.builds(lambda family, tail: family + tail, st.sampled_from(["kafka.", "plugin.", "kafka", "plugin"]), TAILS)
    | st.text(max_size=20)
)


@given(st.dictionaries(ANY_NAME, TEXTS, max_size=8))
def test_any_properties_are_understood_or_refused_by_name(properties: dict[str, str]) -> None:
    names = full(properties)
    sections = {f"{PREFIX}plugin.{name.split('.')[1]}.*" for name in properties if name.startswith("plugin.")}
    try:
        understood = {row.property for row in describe(read(properties))}
    except SettingsError as refusal:
        error = refusal
    else:
        assert understood >= set(names)
        return
    for problem in error.problems:
        assert problem.property in set(names) | sections
        assert printable(problem.property) in str(error)


SECRET = "S3CR3T-hunter2"
SECRETS = {
    "kafka.sasl.password": SECRET, "kafka.bootstrap.servers": SECRET, "plugin.mine.password": SECRET,
    "plugin.mine.api-token": SECRET,
    "static.kafka.admin.sasl.jaas.config": f'a.B required username="u" password="{SECRET}";',
    "static.kafka.admin.ssl.key.password": SECRET, "static.kafka.admin.bootstrap.servers": f"{SECRET}:9092",
}  # fmt: skip


@given(
    properties=st.dictionaries(ANY_NAME, TEXTS, max_size=5),
    supplier=st.sampled_from(["mine", "static"]),
    misspelt=st.sampled_from([{}, {"kafak.sasl.jaas.config": SECRET}, {"static.kafka.admin": SECRET}]),
)
def test_nothing_shows_a_secret(properties: dict[str, str], supplier: str, misspelt: dict[str, str]) -> None:
    given = properties | SECRETS | misspelt | {"supplier": supplier}
    shown = str([note.text for note in Translation(full(given)).notes])
    try:
        settings = read(given)
    except SettingsError:
        shown += traceback.format_exc()
    else:
        shown += f"{settings!r} {settings} {describe(settings)}"
    assert SECRET not in shown
