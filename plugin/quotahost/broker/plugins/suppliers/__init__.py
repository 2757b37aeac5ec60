"""The built-in suppliers answer which quota a client has (role ``QuotaSupplier``)."""
