"""``quotahost explain``: says why a client of a running broker goes as fast as it does, or what fills a volume."""
