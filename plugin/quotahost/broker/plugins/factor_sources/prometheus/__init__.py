"""The factor source ``prometheus``: the volumes of the cluster as a Prometheus server knows them.

``source`` is the plugin, ``settings`` its properties. It asks two PromQL queries (``promql``, over ``http``) and turns
the two answers into volumes (``volumes``). Private to ``quotahost.broker.plugins``.
"""
