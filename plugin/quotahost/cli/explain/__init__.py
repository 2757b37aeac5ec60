"""``quotahost explain``: says why a client of a running broker goes as fast as it does, or what fills a volume.

``explain`` is the command. ``quotahost.cli.start`` and ``quotahost.cli.top`` import the package.
"""
