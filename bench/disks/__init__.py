"""Benches of full disks: how soon, how evenly and how reliably brokers act on them, beside Strimzi's plugin."""
