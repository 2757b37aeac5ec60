"""These tests check the factor source without a broker; run pytest in an environment that has quotahost."""

import pytest
from quotahost.api import Role
from quotahost.testing import FakeHost, check_factor_source

from busy_machine import BusyMachine

PROPERTIES = {"plugin.busy-machine.calm": "2", "plugin.busy-machine.overloaded": "8"}
OTHERS = PROPERTIES | {"plugin.busy-machine.calm": "4"}


def test_it_keeps_the_contract() -> None:
    check_factor_source(BusyMachine, PROPERTIES, name="busy-machine", reconfigured=OTHERS)


@pytest.mark.parametrize(("load", "factor"), [(0, 1), (2, 1), (5, 0.55), (8, 0.1), (100, 0.1)])
def test_the_factor_falls_as_the_load_rises(load: float, factor: float) -> None:
    with FakeHost(Role.FACTOR_SOURCE, BusyMachine, PROPERTIES, name="busy-machine") as host:
        host.plugin.load = lambda: load
        assert host.plugin.read().value == pytest.approx(factor)
