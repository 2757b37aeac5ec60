"""Python quotas inside a Kafka broker: one jar, one property.

Public are :mod:`quotahost.api`, :mod:`quotahost.model`, :mod:`quotahost.units`, :mod:`quotahost.throttling` and
:mod:`quotahost.testing`. Everything else is private and may change in any release.
"""
