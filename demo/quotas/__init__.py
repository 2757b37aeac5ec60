"""The demo's first part: three clients, and three phases of quotas."""
