"""The broker's properties: declared once, read into typed settings, shown and documented from that declaration.

Private, but for the types of ``Settings`` and ``SettingsError``, which plugin authors meet as ``Context.settings`` and
from ``quotahost.testing``. Begin with ``broker.py``, then ``properties.py``.
"""
