"""These tests check the policy without a broker; run pytest in an environment that has quotahost."""

import pytest
from quotahost.api import Role
from quotahost.model import Volume
from quotahost.testing import FakeHost, check_policy

from two_steps import TwoSteps

PROPERTIES = {"plugin.two-steps.slow": "80", "plugin.two-steps.stop": "95"}
OTHERS = PROPERTIES | {"plugin.two-steps.slow": "50"}


def test_it_keeps_the_contract() -> None:
    check_policy(TwoSteps, PROPERTIES, name="two-steps", reconfigured=OTHERS)


@pytest.mark.parametrize(("percent", "factor"), [(0, 1), (79, 1), (80, 0.5), (94, 0.5), (95, 0), (100, 0)])
def test_the_factor_falls_by_steps(percent: int, factor: float) -> None:
    with FakeHost(Role.POLICY, TwoSteps, PROPERTIES, name="two-steps") as host:
        volume = Volume(broker="1", name="/dev/sdb", capacity=1000, consumed=10 * percent)
        assert host.plugin.quota_factor(volume) == factor
