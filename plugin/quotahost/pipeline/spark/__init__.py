"""The pipeline's use of Spark itself: session, places on disks, SQL that several queries share, and the plan cache.

Private to the pipeline; it imports nothing of the pipeline's upper floors.
"""
