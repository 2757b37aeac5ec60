"""Fakes of what a unit test can't have: the Java half, Kafka, installed packages."""
