"""The package of ``quotahost quotas`` manages quotas as code; the module ``command`` has the commands."""
