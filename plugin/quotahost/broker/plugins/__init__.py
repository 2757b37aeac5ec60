"""The plugins that come with quotahost, registered by entry points just as anybody's are.

Private: a plugin is used by its entry point's name. ``suppliers``, ``factor_sources``, ``policies`` and ``tasks``
hold the four roles; ``cluster_quota`` has what belongs to cluster-wide quotas, a supplier and a task.
"""
