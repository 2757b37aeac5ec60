"""The properties of Strimzi's quota plugin, translated into quotahost's own at the edge.

Only ``quotahost.settings`` and the doctor use it: past the translation nobody knows Strimzi's names.
"""
