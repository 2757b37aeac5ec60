"""The built-in quota suppliers: each answers what a client's quota is (role ``QuotaSupplier``).

Private but for their entry points: ``static``, ``overrides``, ``controller-mutation`` and ``client-quotas``; the
supplier ``cluster-quota`` is in ``broker.plugins.cluster_quota``. The host asks them on its own thread in the order of
the property ``supplier``, and an answer stays in the quota table until the supplier announces another one.
"""
