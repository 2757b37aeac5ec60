"""The built-in periodic tasks: each publishes something of this broker to a topic (role ``DataSourceTask``)."""
