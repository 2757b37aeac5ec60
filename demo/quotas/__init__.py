"""The demo's first part: three clients, and three phases in which their quotas change."""
