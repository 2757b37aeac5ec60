"""``quotahost replay``: what other settings would have done, by the history that the pipeline keeps.

``command`` reads the options and the properties, it and ``as_json`` show what :mod:`quotahost.replay` found.
Only ``quotahost.cli.main`` imports the package.
"""
