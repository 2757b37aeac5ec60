"""Built-in suppliers: who gets what."""
