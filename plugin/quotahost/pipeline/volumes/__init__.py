"""Volume snapshots in Spark: parsed, aggregated for each cluster, and published as one record.

Private to the pipeline.
"""
