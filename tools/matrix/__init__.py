"""Installs and runs quotahost on one system after another; ``python -m tools.matrix`` starts it."""
