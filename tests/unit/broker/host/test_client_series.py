"""The series by client: how many, of whom, for how long, and whatever the names are."""

from __future__ import annotations

from typing import Any
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from harness.system.waiting import eventually
from quotahost.broker.host.exporter import CLIENTS_INTERVAL, ClientSeries, Exporter, series
from quotahost.model import QuotaType
from quotahost.model.client_use import Bound, ClientUse

PRODUCE = QuotaType.PRODUCE


def use(user: str = "alice", client_id: str = "app", **changes: Any) -> ClientUse:
    facts: dict[str, Any] = {
        "quota_type": PRODUCE, "user": user, "client_id": client_id, "scope": "client", "rate": 900.0, "quota": 1000.0,
        "limit": 500.0, "delay_ms": 250.0, "bound": Bound.FACTOR, "idle": 0.0,
    }  # fmt: skip
    return ClientUse(**(facts | changes))


def test_a_client_has_a_series_for_each_number_and_one_for_what_binds_it() -> None:
    labels = ("alice", "app", "client", "PRODUCE")
    assert series([use()]) == {
        "Rate": {labels: 900.0},
        "Quota": {labels: 1000.0},
        "Limit": {labels: 500.0},
        "DelayMs": {labels: 0.25},
        "Bound": {(*labels, "factor"): 1},
    }


def test_what_is_unlimited_has_no_quota_and_what_nothing_binds_no_bound() -> None:
    shown = series([use(quota=None, limit=None, bound=Bound.NOTHING)])
    assert [name for name, values in shown.items() if not values] == ["Quota", "Limit", "Bound"]


def test_what_a_rule_in_shadow_would_hold_back_is_told_as_that() -> None:
    shown = series([use(bound=Bound.NOTHING, shadow="factor")])
    assert list(shown["Bound"]) == [("alice", "app", "client", "PRODUCE", "shadow: factor")]


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"rate": 0.0, "delay_ms": 0.0, "bound": Bound.NOTHING}, False),
        ({"rate": 0.1, "delay_ms": 0.0, "bound": Bound.NOTHING}, True),
        ({"rate": 0.0, "delay_ms": 1.0, "bound": Bound.NOTHING}, True),
        ({"rate": 0.0, "delay_ms": 0.0, "bound": Bound.FENCE}, True),
    ],
)
def test_who_is_idle_has_none(changes: dict[str, Any], shown: bool) -> None:
    assert bool(series([use(**changes)])["Rate"]) is shown


def test_long_names_are_cut_and_stay_apart() -> None:
    names = [user for user, *_ in series([use("x" * 1000), use("x" * 999 + "y")])["Rate"]]
    assert len(set(names)) == 2
    assert {len(name) for name in names} == {100}


class Clock:
    def __init__(self) -> None:
        self.now, self.looks, self.takes = 0.0, 0, 0.0

    def __call__(self) -> float:
        return self.now

    def uses(self, most: int) -> list[ClientUse]:
        self.looks += 1
        self.now += self.takes
        return [use()][:most]


def test_it_looks_seldom_and_more_seldom_the_longer_a_look_takes() -> None:
    clock = Clock()
    clients = ClientSeries(clock.uses, 200, clock)
    for second, looks in ((0, 1), (4.9, 1), (CLIENTS_INTERVAL, 2)):
        clock.now = second
        assert clients.read()["Rate"]
        assert clock.looks == looks
    clock.now, clock.takes = 20.0, 1.0
    clients.read()
    clock.now = 70.9
    assert (clients.read() != {}, clock.looks) == (True, 3)
    clock.now = 71.1
    assert (clients.read() != {}, clock.looks) == (True, 4)


def test_what_cannot_be_read_is_left_out_until_it_can(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()

    def fails(most: int) -> list[ClientUse]:
        if clock.now < CLIENTS_INTERVAL:
            raise ConnectionError("no JMX")
        return clock.uses(most)

    clients = ClientSeries(fails, 200, clock)
    assert clients.read() == {}
    assert "can't be read (no JMX)" in caplog.text
    clock.now = CLIENTS_INTERVAL
    assert clients.read()["Rate"]


def test_a_scrape_shows_names_as_they_are() -> None:
    shown = [use('a"\\\n', "ü\t"), use("<b>", scope="group x")]
    exporter = Exporter("127.0.0.1", 0, list, lambda: None, ClientSeries(lambda most: shown[:most], 200))
    try:
        eventually(lambda: exporter._collect.clients)
        with urlopen(f"http://127.0.0.1:{exporter.port}/metrics") as page:
            families = {f.name: f for f in text_string_to_metric_families(page.read().decode())}
    finally:
        exporter.close()
    names = {
        (sample.labels["user"], sample.labels["client_id"]) for sample in families["quotahost_client_rate"].samples
    }
    assert names == {('a"\\\n', "ü\t"), ("<b>", "app")}
    assert {sample.labels["by"] for sample in families["quotahost_client_bound"].samples} == {"factor"}
