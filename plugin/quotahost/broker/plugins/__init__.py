"""The plugins that come with quotahost, registered by entry points just as anybody's are.

Private: a plugin is used by its entry point's name. ``suppliers``, ``factor_sources``, ``policies`` and ``tasks``
hold the four roles; ``cluster_quota`` holds what several of them share; ``kafka`` is their door to a
cluster.
"""
