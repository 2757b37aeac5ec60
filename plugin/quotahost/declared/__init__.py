"""Quotas as code: what files declare, what a cluster has, and the way from one to the other.

``document`` reads files, ``changes`` compares, ``target`` asks and changes a running cluster, ``written`` makes a file
of what a cluster has. ``quotahost quotas`` is the command; docs/quotas.md describes the file.
"""
