"""These tests check the task without a broker; run pytest in an environment that has quotahost."""

from datetime import timedelta

from quotahost.api import Role
from quotahost.testing import FakeHost, check_task

from show_load import ShowLoad

PROPERTIES = {"plugin.show-load.period": "10s"}
OTHERS = {"plugin.show-load.period": "1s"}


def test_it_keeps_the_contract() -> None:
    check_task(ShowLoad, PROPERTIES, name="show-load", reconfigured=OTHERS)


def test_it_shows_the_load() -> None:
    with FakeHost(Role.TASK, ShowLoad, PROPERTIES, name="show-load") as host:
        assert host.plugin.period == timedelta(seconds=10)
        host.run()
        assert host.broker.number("Machine", "LoadAverage") is not None
