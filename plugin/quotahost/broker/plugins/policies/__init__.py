"""The built-in policies: each makes a factor of how full a volume is (role ``QuotaPolicy``).

Private but for the entry points ``limits`` and ``setpoint``. The host calls a policy on its own thread for every volume
that the factor source reports, and the smallest factor holds.
"""
