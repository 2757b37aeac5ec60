"""``quotahost quotas``: quotas as code.

``command`` has the commands and their exit codes, ``showing`` the tables; the logic is in ``quotahost.declared``.
"""
