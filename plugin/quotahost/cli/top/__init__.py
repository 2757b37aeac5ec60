"""``quotahost top``: who uses what right now, who is held back, and by what.

``attached`` looks at one broker, ``order`` sorts and filters what it found, ``drawing`` makes a table of it. ``screen``
is what the live table shows after each key, ``keys`` reads them, ``live`` puts all of it together in a terminal.
"""
