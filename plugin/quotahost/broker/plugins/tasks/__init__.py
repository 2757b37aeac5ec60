"""The built-in periodic tasks about disks, and what a broker shows to those who watch (role ``DataSourceTask``).

Private but for their entry points ``publish-volumes`` and ``cordon``. The host runs each on a thread of its own.
"""
