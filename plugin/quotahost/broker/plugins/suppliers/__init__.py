"""The built-in suppliers: each answers what a client's quota is (role ``QuotaSupplier``)."""
