"""A deterministic simulator of the whole loop from a disk's bytes back to its writers: no Kafka, no JVM, no threads.

The policy, the host's ``FactorLoop``, the roster of snapshots, the tap and Kafka's sampled rate are the real ones;
clients, disks and the way of snapshots are models. A ``Scene`` says what happens, ``run`` plays it by events, in
milliseconds that pass when nothing is left to do in the last, and ``Checks`` watches what must hold at all times. The
same scene always ends the same, so a seed is all that it takes to see a failure again. Private; the program is
``quotahost simulate disk``.
"""
