"""What other settings would have done: plays a policy over the history of volumes.

``decider`` is the real policy, the real judgement and the tap of one broker, ``play`` leads two of them through the
history, ``growth`` estimates how a volume would have filled, ``tally`` sums up for the table. Nothing here knows
Spark. Private; the program is ``quotahost replay``.
"""
