"""What operators run on a desk: before a broker has a setting ``simulate``, after it had one ``report`` and ``replay``.

``world`` plays one model of the loop; ``replay`` leads the same host and tap over the history of volumes (``play``).
"""
