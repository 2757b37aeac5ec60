"""The built-in tasks about disks, and what a broker shows to those who watch (role ``DataSourceTask``)."""
