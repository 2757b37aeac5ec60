"""``quotahost quotas``: quotas as code.

``command`` has the commands, ``actions`` what each does and shows. ``declared`` reads files (by ``yaml_file``), and
``plan`` compares them with what a cluster has (``cluster``, and ``client_quotas`` for Kafka's own). docs/quotas.md
describes the files.
"""
