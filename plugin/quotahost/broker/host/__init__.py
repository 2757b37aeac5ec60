"""The Python half inside the broker: takes new clients from the shim, asks the plugins, publishes their answers.

Private. From outside, only the shim's scripts and the command line import it. Read it in this order:

- ``loop``: the host's start and each of its rounds; ``live_change``: its properties change while it serves.
- ``new_clients`` and ``exemptions``: a client's first request. ``plugins``: what all calls of plugins have in common.
- ``factor`` and ``volume_evaluation``: what full disks lead to.
- ``shadow``: what rules that aren't enforced would do.
- ``broker``, ``broker_status``, ``dump``, ``exporter``, ``logs``: what plugins, operators and Prometheus see.
- ``protocol``, ``messages``, ``bridge``: the calls to Java, their bytes, and the two ways of these. Tests need no JVM:
  ``tests.fakes.shim`` stands in for Java.
"""
