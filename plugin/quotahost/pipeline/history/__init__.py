"""The history: every reading of every volume as Parquet, written by the pipeline, read by ``quotahost report``.

``writer`` writes it; ``store``, ``ranking`` and ``collect`` answer a report's question from it. Private to the pipeline
and to the command ``quotahost report``.
"""
