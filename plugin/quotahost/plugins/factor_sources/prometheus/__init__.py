"""The factor source ``prometheus``: two PromQL queries, asked on a thread of their own, become volumes.

``source`` is the plugin; ``http`` and ``promql`` ask the server, ``volumes`` turns its answers into volumes.
"""
