"""The properties of Strimzi's quotas plugin, translated into quotahost's own at the edge.

Private. Only ``settings.broker`` translates; the host and ``doctor`` show the notes, ``tools/tables.py`` the table.
Past the translation nobody knows Strimzi's names.
"""
