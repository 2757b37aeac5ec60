"""A kit that checks a plugin against the contract of :mod:`quotahost.api`, without a broker. Public.

One call in a test of yours::

    from quotahost.testing import check_supplier

    def test_it_keeps_the_contract():
        check_supplier(OffPeak, {"plugin.off-peak.produce": "1M"}, name="off-peak")

If the plugin breaks the contract, the check fails with an AssertionError whose sentence names the contract's number.
:class:`FakeHost` drives a plugin step by step, for tests of what it decides, on a :class:`FakeBroker`. It refuses
plugins and properties by a :class:`PluginError` or a :class:`SettingsError`, as a broker does at its start. The
modules below are private; import from here.
"""

from quotahost.broker.discovery import PluginError
from quotahost.settings.declaration import SettingsError
from quotahost.testing.broker import FakeBroker
from quotahost.testing.checks import check_factor_source, check_policy, check_supplier, check_task
from quotahost.testing.host import FakeHost
from quotahost.testing.samples import CLIENT_QUOTAS, CLIENTS, VOLUMES

__all__ = [
    "CLIENTS", "CLIENT_QUOTAS", "VOLUMES", "FakeBroker", "FakeHost", "PluginError", "SettingsError",
    "check_factor_source", "check_policy", "check_supplier", "check_task",
]  # fmt: skip
