"""quotahost runs Python quotas inside a Kafka broker, with one jar and one property.

The packages :mod:`quotahost.api`, :mod:`quotahost.model`, :mod:`quotahost.units`, :mod:`quotahost.throttling` and
:mod:`quotahost.testing` are public. All other modules are private and may change in any release.
"""
