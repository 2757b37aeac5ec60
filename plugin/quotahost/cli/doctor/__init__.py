"""``quotahost doctor``: looks at an installation and a properties file before the broker is started.

``doctor`` gathers the facts and prints; every other module is checks.
"""
