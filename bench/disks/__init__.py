"""Benches of full disks: how soon, how evenly and how surely brokers act on them, beside Strimzi's plugin."""
