"""Built-in factor sources."""
