"""The Python host inside the broker takes new clients from the shim, asks the plugins and publishes their answers.

This package is private: only the shim's scripts and the command line import it. Read it in this order:

- ``loop``: the host's start and its rounds; ``live_change``: a change of properties while the host serves.
- ``new_clients`` and ``exemptions``: a client's first request. ``plugins``: how the host calls any plugin.
- ``factor`` and ``volume_evaluation``: how full disks slow and stop producers.
- ``shadow``: what the rules in shadow would do if they were enforced.
- ``broker``, ``broker_status``, ``dump``, ``exporter``, ``logs``: what plugins, operators and Prometheus see.
- ``protocol``, ``messages``, ``bridge``: the calls to Java, their encoding, and the two transports. Unit tests need no
  JVM: ``tests.fakes.shim`` stands in for Java.
"""
