"""Tests on real brokers share this code: nodes with quotahost, their metrics, producers, and a stand-in pipeline."""
