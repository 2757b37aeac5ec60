"""The command ``quotahost``: all that operators run. Each command is the module or package of its name.

``simulate``, ``report`` and ``replay`` are in ``lab``; ``pipeline``, whose options are the program's own, and
``properties`` are in ``main``.
"""
