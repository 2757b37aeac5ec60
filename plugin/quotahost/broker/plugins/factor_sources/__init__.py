"""The built-in factor sources report how full the volumes are, or a factor (role ``QuotaFactorSource``)."""
