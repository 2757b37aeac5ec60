"""The Spark pipeline: snapshots of all brokers in, one small record of each cluster out."""
