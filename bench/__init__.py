"""``make bench``: measures quotahost beside a peer in the same run, so that ratios can be compared across machines.

Each module measures one thing and returns a Markdown table for docs/benchmarks.md; ``__main__`` runs them by name.
"""
