"""The built-in quota suppliers: each answers what a client's quota is (role ``QuotaSupplier``).

Private but for their entry points: ``static``, ``client-quotas``, ``overrides``, ``controller-mutation`` and
``cluster-quota``. The host asks them on its own thread in the order of the property ``supplier``, and an answer stays
in the quota table until the supplier announces another one.
"""
