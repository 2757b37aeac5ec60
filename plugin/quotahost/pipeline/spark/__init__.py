"""The pipeline's use of Spark itself: session and configuration, connector, plan cache, offsets, sinks.

Private to the pipeline; it imports nothing of the pipeline's upper floors.
"""
