"""The built-in tasks (role ``DataSourceTask``). Of ``publish-usage`` only what ``top`` shows; see ``cluster_quota``."""
