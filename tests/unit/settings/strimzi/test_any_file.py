"""Every valid file of Strimzi's is understood, and no secret of one is shown."""

import traceback

from hypothesis import given
from hypothesis import strategies as st

from quotahost.settings.declaration import SettingsError
from quotahost.settings.reader import describe
from quotahost.settings.strimzi import Note
from tests.unit.settings.strimzi.files import ADMIN, BYTES, FALLBACK, INTERVAL, RATIO, SECRET, VALIDITY, notes, read

SECRETS = {
    f"{ADMIN}sasl.jaas.config": f'a.B required username="u" password="{SECRET}";',
    f"{ADMIN}ssl.keystore.password": SECRET,
    f"{ADMIN}ssl.key.password": SECRET,
    f"{ADMIN}bootstrap.servers": f"{SECRET}:9092",
}


WHOLE = st.integers(0, 2**63 - 1).map(str)


SHARE = st.floats(0, 1).map(repr) | st.sampled_from(["0", "1", "1.0d", ".5", "5E-2"])


SECONDS = st.integers(-5, 2**31 - 1).map(str)


DURATION = st.builds("P{}DT{}H{}M{}S".format, st.integers(0, 99), *[st.integers(1, 59)] * 3) | st.just("PT5M")


RATE = st.floats(1e-3, 1e300).map(repr) | st.integers(1, 2**40).map(str)


FILES = st.fixed_dictionaries(
    {f"{ADMIN}bootstrap.servers": st.just("localhost:9092")},
    optional={
        "static.produce": RATE,
        "static.fetch": RATE,
        "static.request": RATE,
        "static.excluded.principal.name.list": st.sampled_from(["User:a", "User:a;User:CN=b,OU=c"]),
        INTERVAL: SECONDS,
        FALLBACK: SHARE,
        VALIDITY: DURATION,
        f"{ADMIN}ssl.truststore.type": st.sampled_from(["PKCS12", "JKS"]),
        "static.kafka.clientIdPrefix": st.text(max_size=5),
    },
)


LIMITS: st.SearchStrategy[dict[str, str]] = st.one_of(
    st.just({}), WHOLE.map(lambda text: {BYTES: text}), SHARE.map(lambda text: {RATIO: text})
)


@given(FILES, LIMITS)
def test_every_valid_file_of_theirs_is_understood_and_described(file: dict[str, str], limit: dict[str, str]) -> None:
    properties = {**file, **limit}
    settings = read(properties)
    is_on = int(properties.get(INTERVAL, "60")) > 0
    assert (settings.storage_hard is not None) == bool(limit)
    assert settings.factor_source == ("log-dirs" if limit and is_on else None)
    assert describe(settings)
    noted = " ".join(notes(properties))
    for name in properties:
        assert name.removeprefix(ADMIN) in noted, "each has a note"


@given(FILES, LIMITS, st.sampled_from([{}, {"shadow": "x"}, {FALLBACK: "x"}, {"kafak.password": SECRET}]))
def test_no_secret_of_strimzi_s_is_shown(file: dict[str, str], limit: dict[str, str], wrong: dict[str, str]) -> None:
    properties = {**file, **limit, **SECRETS, **wrong}
    shown = " ".join(notes(properties)) + repr(Note("x"))
    try:
        settings = read(properties)
    except SettingsError:
        shown += traceback.format_exc()
    else:
        shown += f"{settings!r} {settings} {describe(settings)}"
    assert SECRET not in shown
