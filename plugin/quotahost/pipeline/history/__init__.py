"""The history: every reading of every volume as Parquet, written by the pipeline, read by ``quotahost report``.

``writer`` writes it; ``store``, ``ranking`` and ``collect`` answer a report's question from it, ``everything`` that of
a replay. ``usage`` writes what clients used beside it, and ``used`` reads that. Private to the pipeline and to the
commands ``quotahost report`` and ``quotahost replay``.
"""
