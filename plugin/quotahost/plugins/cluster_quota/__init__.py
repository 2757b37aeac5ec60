"""What the supplier ``cluster-quota`` and the task ``publish-usage`` share: rates, demand, and this broker's shares.

Private to ``quotahost.plugins``.
"""
