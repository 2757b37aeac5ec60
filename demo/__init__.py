"""``make demo`` shows on a real broker what quotahost does.

The module ``quotas`` plays three phases of client quotas, ``disk`` fills a disk, and ``spark`` (with ``SPARK=1``) runs
three brokers with the Spark pipeline. Each part prints what happens, checks it, and draws a picture into build/demo.
"""
