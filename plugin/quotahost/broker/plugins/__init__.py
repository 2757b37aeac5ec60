"""The plugins that come with quotahost, registered by entry points as anybody's are, by whose names they are used.

Private. ``cluster_quota`` has what belongs to cluster-wide quotas, a supplier and a task.
"""
