"""``quotahost explain``: says why a client of a running broker goes as fast as it does, or what fills a volume.

``broker_socket`` finds the broker and asks it. For a client ``quota`` reads what comes back, and ``wording`` puts it
into sentences; for a volume ``retention`` works out what would make room, and ``volume`` the rest. ``explain`` is the
command. ``quotahost.cli.start`` and ``quotahost.cli.top`` import the package.
"""
