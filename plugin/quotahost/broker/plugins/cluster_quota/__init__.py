"""Cluster-wide client quotas: what the supplier ``cluster-quota`` and the task ``publish-usage`` have in common.

Private to ``broker.plugins``. ``quotas`` follows the quotas, ``demand`` estimates what clients would use of them, and
``share_book`` keeps what the pipeline gave this broker of each.
"""
