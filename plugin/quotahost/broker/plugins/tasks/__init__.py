"""The built-in tasks (role ``DataSourceTask``), except ``publish-usage``, most of which is in ``cluster_quota``."""
