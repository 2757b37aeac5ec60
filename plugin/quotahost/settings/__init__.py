"""The broker's properties: declared once, read into typed settings, shown, and documented from that declaration.

Private, but for ``Settings`` and ``SettingsError``, which plugin authors meet in ``quotahost.api``.
Everything above reads settings from here; this package knows only ``records``, ``model``, ``units`` and ``text``.
"""
