"""Cluster-wide quotas in a broker: ``quotas`` reads them, ``usage`` publishes their use, ``shares`` gives the rates."""
