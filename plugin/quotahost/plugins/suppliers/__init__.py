"""The built-in quota suppliers: each says what a client's quota is (role ``QuotaSupplier``)."""
