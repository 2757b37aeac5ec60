"""The command ``quotahost``: install, doctor, plugins, properties."""
