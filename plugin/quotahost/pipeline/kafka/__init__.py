"""Kafka's Java clients in the driver's JVM, the leadership of one pipeline among several, and ticks."""
