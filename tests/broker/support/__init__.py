"""What tests on real brokers share."""
