"""``quotahost explain``: asks a running broker why a client is as fast as it is, and says it in sentences."""
