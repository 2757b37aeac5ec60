"""``clientA:4M,clientB:10M``, the form of KIP-13's overrides."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotahost.settings.rate_lists import parse_rates

NAMES = st.text(min_size=1).filter(lambda name: name.strip())
RATES = st.floats(min_value=1e-3, max_value=1e15)


def escaped(name: str) -> str:
    """Every character behind a backslash: whatever it is, it is part of the name."""
    return "".join(f"\\{char}" for char in name)


@pytest.mark.parametrize(
    ("text", "rates"),
    [
        ("clientA:4M,clientB:10M", {"clientA": 4e6, "clientB": 10e6}),
        ('"clientA:4M,clientB:10M"', {"clientA": 4e6, "clientB": 10e6}),  # as KIP-13 has its example
        (" a b : 4M ,\tc:1Ki ", {"a b": 4e6, "c": 1024}),
        (r"ns\:app:4M,CN=a\,O=b:2M,back\\slash:1M,\ x\ :3M",
         {"ns:app": 4e6, "CN=a,O=b": 2e6, "back\\slash": 1e6, " x ": 3e6}),
        ("a:unlimited", {"a": None}),
        *((text, {}) for text in ("", "  ", '""')),
    ],
)  # fmt: skip
def test_a_list_of_names_and_rates_is_understood(text: str, rates: dict[str, float | None]) -> None:
    assert parse_rates(text) == rates


@given(st.dictionaries(NAMES, RATES, max_size=5))
def test_whatever_the_names_an_escaped_list_reads_back(rates: dict[str, float]) -> None:
    assert parse_rates(",".join(f"{escaped(name)}:{rate!r}" for name, rate in rates.items())) == rates


@given(st.text(alphabet=':,\\" ab1M.-\n', max_size=20))
def test_any_text_is_read_or_refused_with_a_remedy(text: str) -> None:
    try:
        rates, error = parse_rates(text), ""
    except ValueError as wrong:
        rates, error = {}, str(wrong)
    assert not error or re.search(r"write|remove", error)
    assert all(name and (rate is None or rate > 0) for name, rate in rates.items())


@pytest.mark.parametrize(
    ("text", "entry", "remedy"),
    [
        ("a:4M,clientB", "'clientB'", "without a rate; write NAME:RATE"),
        ("a:4M,b:fast", "'b:fast'", "whose rate is not a number; write"),
        ("a:-4M", "'a:-4M'", "whose rate must be finite and above 0"),
        ("a:4X", "'a:4X'", "unknown unit 'X'"),
        ("a:", "'a:'", "whose rate is empty"),
        ("ns:app:4M", "'ns:app:4M'", r"more than one colon; write \: for a colon in a name"),
        ("a:4M b:5M", "'a:4M b:5M'", "a comma between entries"),
        (":4M", "':4M'", "without a name"),
        ("a:4M,,b:5M", "an empty entry", "one comma each"),
        ("a:4M,", "an empty entry", "one comma each"),
        ("a:4M,a:5M", "'a' twice", "remove one"),
        ("a\\:4M", r"'a\\:4M'", "without a rate"),
    ],
)
def test_an_error_names_the_entry_and_the_remedy(text: str, entry: str, remedy: str) -> None:
    with pytest.raises(ValueError, match=re.escape(entry)) as refused:
        parse_rates(text)
    assert remedy in str(refused.value)
