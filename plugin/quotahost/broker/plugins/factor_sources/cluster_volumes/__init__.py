"""The factor source ``cluster-volumes``: how full the whole cluster is, out of one record that the pipeline publishes.

With ``snapshots`` each of N brokers reads N snapshots; here the pipeline reads them and sums them up in one record for
the cluster, whose size doesn't grow with N. So that the pipeline is never the only way to be safe, a second factor
source stands by (property ``factor.source.second``, by default ``snapshots``) and answers while no record comes.

The host calls ``ClusterVolumesSource.read`` (``source``) every ``factor.interval``, on the host thread. It calls,
in this order:

1. ``reader.RecordReader``: the newest record and its age. It follows the topic on a thread of its own.
2. ``state.ClusterState``: what this broker makes of the record. It holds which brokers are registered and since when
   something has been unknown, and returns a ``ClusterView``: volumes, what is unknown, and whether it is complete.
3. ``failover.Failover``: which of the two answers, the record or the standby. It holds the answer of last time.
4. ``standby.Standby``: builds, reads and closes the standby source. It holds one ``StandbyInstance`` at a time, which
   shows its numbers through ``standby_metrics.StandbyMetrics``.

**A switch** goes like this. When no record has come for half of ``validity``, the standby source is built, on a thread
of its own. After ``validity`` the standby answers; until it has read enough to answer without waiting, the last
record's volumes and unknowns still hold, so that no full disk is forgotten in between. The next fresh record switches
back at once, unless it is incomplete: the first record of a new pipeline may leave out brokers of which the pipeline
has not read a snapshot yet. Then the standby goes on, and is closed after the first complete record.

Private to ``quotahost.broker.plugins``.
"""
