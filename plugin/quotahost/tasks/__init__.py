"""Built-in data source tasks."""
