"""Kafka beside Spark: Java clients in the driver's JVM, Kafka's clock, the leading pipeline, and ticks.

Private to the pipeline; it imports nothing of the pipeline's upper floors.
"""
