"""The built-in factor sources: each reports how full the volumes are, or a factor (role ``QuotaFactorSource``).

``snapshots`` and ``cluster_volumes`` read the disks of all brokers from a topic, both by the rule of ``liveness``.
"""
