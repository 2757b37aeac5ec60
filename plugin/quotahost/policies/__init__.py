"""Built-in quota policies."""
