"""The built-in policies compute a factor from how full a volume is (role ``QuotaPolicy``)."""
