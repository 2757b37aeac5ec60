"""Real Kafka nodes and clusters, and the actions of an operator on them.

``node`` and ``cluster`` start and stop processes, ``settings`` and ``properties`` write their configuration, ``admin``
changes topics, quotas and broker configs, and ``quotas`` reads which quotas a node enforces.
"""
