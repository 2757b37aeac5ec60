"""The command ``quotahost`` has all that operators run: each of its commands has a module or package of its name.

There are exceptions: ``plugins`` is in ``doctor``; ``simulate``, ``report`` and ``replay`` are in ``lab``;
``properties`` and ``pipeline``, whose options are in ``quotahost.pipeline``, are in ``main``.
"""
