"""``quotahost quotas``: quotas as code. ``command`` has the commands, and tells their course."""
