"""``quotahost explain --volume``: shows what fills a volume of a broker, how fast, and what would make room.

``facts`` holds the broker's answer, ``cuts`` and ``retention`` work out what a shorter retention would free,
``wording`` makes text of all of it, and ``command`` asks, measures and prints. Everything is read in this process, as
the broker's user: a slow disk holds up no thread of the broker.
"""
