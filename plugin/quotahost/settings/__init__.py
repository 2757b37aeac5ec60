"""The broker's properties: declared once, read into typed settings, shown and documented from that declaration.

This package is private, except the types of ``Settings`` and ``SettingsError``: plugin authors meet them as
``Context.settings`` and in ``quotahost.testing``. Read ``broker.py`` first, then ``properties.py``.
"""
