"""Records, rows and topics that several tests of the pipeline use."""
