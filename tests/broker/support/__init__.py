"""What tests on real brokers share: nodes with quotahost, their metrics, producers, and a stand-in for the pipeline."""
