"""The built-in periodic tasks: each publishes something of this broker to a topic (role ``DataSourceTask``).

Private but for their entry points ``publish-volumes`` and ``publish-usage``. The host runs each on a thread of its own.
``news`` decides for both when a record is worth writing.
"""
