"""Tests of a plain Python model in ``harness`` by which the product's SQL is tested."""
