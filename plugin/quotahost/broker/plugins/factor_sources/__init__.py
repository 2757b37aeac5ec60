"""The built-in factor sources: each reports how full the volumes are, or a factor (role ``QuotaFactorSource``).

``local`` reads this broker's disks; ``snapshots`` and ``cluster_volumes`` read those of all brokers from a topic, both
by the rule of ``liveness``; ``log_dirs`` asks the brokers and ``prometheus`` a monitoring system; ``fixed`` is for
drills. Private to ``quotahost.broker.plugins``: a source is used by its entry point's name.
"""
