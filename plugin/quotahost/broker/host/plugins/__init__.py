"""The host's plugins: built from the settings, kept as one set, replaced by a live change, and tasks on their threads.

``builder`` builds, ``plugin_set`` holds and replaces, ``scheduler`` runs the tasks. Private to ``broker.host``.
"""
