"""The machine around the brokers.

Processes and their logs, free ports, file systems, TLS certificates, a network that fails, programs from Debian's
packages, and waiting for conditions. ``pipeline`` runs quotahost's pipeline as a process.
"""
