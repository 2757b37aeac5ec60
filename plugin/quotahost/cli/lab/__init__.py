"""``simulate`` tries settings and quotas on models; ``report`` and ``replay`` read the history of volumes.

No command needs a broker. ``world`` (for ``simulate disk``) and ``play`` (for ``replay``) use the same host and tap.
"""
