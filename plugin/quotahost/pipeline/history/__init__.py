"""Every reading of every volume as Parquet: written by the pipeline, read by ``quotahost report``."""
