"""The data's way from snapshots to cluster records: ``parse``, ``aggregate``, ``record``, ``publisher``, in this order.

Private to the pipeline: its queries and its job import it.
"""
