"""Cluster-wide client quotas, as a broker deals with them: the supplier ``cluster-quota``, the task ``publish-usage``.

Private but for these entry points. ``quotas`` follows the quotas, ``usage`` publishes what clients use of them, and
``shares`` gives each client what the pipeline gave this broker.
"""
