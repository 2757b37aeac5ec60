"""The built-in policies: each makes a factor of how full a volume is (role ``QuotaPolicy``)."""
