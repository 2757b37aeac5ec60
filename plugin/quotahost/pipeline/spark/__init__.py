"""What the pipeline needs of Spark itself: session, connector, offsets, sinks. Private to the pipeline."""
