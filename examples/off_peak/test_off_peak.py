"""These tests check the supplier without a broker; run pytest in an environment that has quotahost.

``check_supplier`` checks the plugin against the contract of ``quotahost.api``; ``FakeHost`` calls the plugin step by
step, for tests of single answers.
"""

from datetime import datetime

import pytest
from quotahost.api import Role
from quotahost.model import QuotaType
from quotahost.testing import FakeHost, SettingsError, check_supplier

from off_peak import OffPeak

PROPERTIES = {"plugin.off-peak.produce": "1M", "plugin.off-peak.from": "22:00", "plugin.off-peak.to": "06:00"}


def rate_at(host: FakeHost[OffPeak], hour: int, minute: int = 0) -> float | None:
    host.plugin.clock = lambda: datetime(2025, 1, 1, hour, minute)
    host.tick()
    quota = host.quota("alice", "app", QuotaType.PRODUCE)
    return quota.rate if quota else None


def test_it_keeps_the_contract() -> None:
    check_supplier(OffPeak, PROPERTIES, reconfigured=PROPERTIES | {"plugin.off-peak.produce": "2M"})


def test_quiet_hours_double_the_rate_past_midnight() -> None:
    with FakeHost(Role.SUPPLIER, OffPeak, PROPERTIES) as host:
        rates = [rate_at(host, 21, 59), rate_at(host, 22), rate_at(host, 3), rate_at(host, 6)]
    assert rates == [1e6, 2e6, 2e6, 1e6]


def test_quiet_hours_may_lie_within_a_day() -> None:
    noon = PROPERTIES | {"plugin.off-peak.from": "12:00", "plugin.off-peak.to": "13:00"}
    with FakeHost(Role.SUPPLIER, OffPeak, noon) as host:
        assert [rate_at(host, 11), rate_at(host, 12), rate_at(host, 13)] == [1e6, 2e6, 1e6]


def test_the_change_is_announced_once() -> None:
    with FakeHost(Role.SUPPLIER, OffPeak, PROPERTIES) as host:
        rate_at(host, 21)
        host.announced.clear()
        assert (rate_at(host, 22), rate_at(host, 23)) == (2e6, 2e6)
        assert host.announced == [(None, None)]


def test_other_quota_types_are_left_to_the_next_supplier() -> None:
    with FakeHost(Role.SUPPLIER, OffPeak, PROPERTIES) as host:
        assert host.quota("alice", "app", QuotaType.FETCH) is None


def test_a_wrong_hour_is_refused_with_the_form_that_is_expected() -> None:
    with pytest.raises(SettingsError, match=r"plugin.off-peak.from=25:00.*as HH:MM"):
        FakeHost(Role.SUPPLIER, OffPeak, PROPERTIES | {"plugin.off-peak.from": "25:00"})
