"""Which label a client's use goes to, which months there are, and what of a month is missing."""

from datetime import UTC, datetime

import pytest

from quotahost.cli.console import csv_text
from quotahost.cli.quotas.plan import Entity
from quotahost.cli.quotas.usage import Bill, label_of, last_month, parse_month
from quotahost.model import DEFAULT

LABELS = {
    Entity("alice", "bulk"): "bulk",
    Entity("alice"): "alice",
    Entity("alice", in_cluster=True): "alice in the cluster",
    Entity(None, "legacy"): "legacy",
    Entity(DEFAULT, in_cluster=True): "others",
}


@pytest.mark.parametrize(
    ("user", "client", "label"),
    [
        ("alice", "bulk", "bulk"), ("alice", "app", "alice in the cluster"),
        ("alice", "legacy", "alice in the cluster"), ("bob", "legacy", "legacy"), ("bob", "app", "others"),
        ("", "", "others"),
    ],
)  # fmt: skip
def test_the_most_specific_entity_with_a_label_counts(user: str, client: str, label: str) -> None:
    assert label_of(LABELS, user, client) == label
    assert label_of({Entity("nobody"): "n"}, user, client) == ""


def test_a_month_ends_where_the_next_begins() -> None:
    assert parse_month("2026-12") == (datetime(2026, 12, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))
    assert last_month(datetime(2026, 3, 31, tzinfo=UTC)) == "2026-02"
    for text in ("2026-13", "9999-12", "2026", "2026-11-01", ""):
        with pytest.raises(ValueError, match="is no month"):
            parse_month(text)


def test_days_with_missing_hours_are_named_with_the_hours_that_are_there() -> None:
    made = Bill(*parse_month("2026-02"))
    made.hours["c"] = set(range(made.length)) - {0, 1, 30}
    days = [(day.day, hours) for day, hours in made.incomplete_days("c")]
    assert days == [(1, 22), (2, 23)]


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "＝", " =", "\t=", "\r="])  # noqa: RUF001
def test_in_csv_no_text_is_a_formula_numbers_stay_and_each_row_is_a_line(sign: str) -> None:
    head, line, rest = csv_text(["a"], [[f'{sign}1+1;"x"']]).split("\n")
    assert (head, rest) == ('"a"', "")
    assert not line.strip('"').lstrip().startswith(("=", "+", "-", "@", "＝"))  # noqa: RUF001
    assert csv_text(["a", "b"], [["x\ny\x1b", 7]]) == '"a","b"\n"x\\ny\\x1b",7\n'
