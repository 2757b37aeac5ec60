"""The factor source ``cluster-volumes``: the pipeline's record, this broker's own disks, and a standby source.

``source`` is the plugin; ``reader`` follows the topic, ``state`` turns a record into volumes, ``failover`` decides
whether the record or the standby source answers, and ``standby`` builds and closes that one.
"""
