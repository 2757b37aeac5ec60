"""``quotahost explain``: says why a client of a running broker goes as fast as it does.

``brokers`` finds the broker's socket and asks it, ``query`` turns failures into errors with a remedy, ``answer`` reads
what comes back, ``wording`` puts it into sentences (``mutations`` those about partition mutations), and ``command``
prints these. ``quotahost.cli.start`` and ``quotahost.cli.top`` import the package.
"""
