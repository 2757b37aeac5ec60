"""This kit checks a plugin against the contract of :mod:`quotahost.api`, without a broker. Public.

A plugin's test needs one call::

    from quotahost.testing import check_supplier

    def test_it_keeps_the_contract():
        check_supplier(OffPeak, {"plugin.off-peak.produce": "1M"}, name="off-peak")

If the plugin breaks the contract, the check raises an AssertionError with the number of the sentence.
:class:`FakeHost` calls a plugin step by step on a :class:`FakeBroker`, for tests of the plugin's decisions. Like a
broker at its start, FakeHost refuses plugins with a :class:`PluginError` and properties with a :class:`SettingsError`.
Import from this package; its modules are private.
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
