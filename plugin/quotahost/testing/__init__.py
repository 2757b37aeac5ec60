"""A kit that checks a plugin against the contract of :mod:`quotahost.api`, without a broker.

One call in a test of yours::

    from quotahost.testing import check_supplier

    def test_it_keeps_the_contract():
        check_supplier(OffPeak, {"plugin.off-peak.produce": "1M"}, name="off-peak")

What breaks the contract is an AssertionError that says so in a sentence and names the contract's number.
:class:`FakeHost` drives a plugin step by step, for tests of what it decides, on a :class:`FakeBroker`.
"""

from quotahost.testing.broker import FakeBroker
from quotahost.testing.checks import check_factor_source, check_policy, check_supplier, check_task
from quotahost.testing.host import FakeHost
from quotahost.testing.samples import CLIENT_QUOTAS, CLIENTS, VOLUMES

__all__ = [
    "CLIENTS",
    "CLIENT_QUOTAS",
    "VOLUMES",
    "FakeBroker",
    "FakeHost",
    "check_factor_source",
    "check_policy",
    "check_supplier",
    "check_task",
]
