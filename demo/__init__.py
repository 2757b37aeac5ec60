"""``make demo``: Python quotas on a real broker, to look at."""
