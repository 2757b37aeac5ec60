"""``quotahost explain`` says what limits a client of a running broker, or what fills a volume."""
