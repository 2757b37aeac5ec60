"""The built-in factor sources: each reports how full the volumes are, or a factor (role ``QuotaFactorSource``)."""
