"""Cluster-wide quotas in a broker: ``quotas`` follows them, ``usage`` publishes their use, ``shares`` gives rates."""
