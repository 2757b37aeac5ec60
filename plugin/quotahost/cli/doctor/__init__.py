"""``quotahost doctor``: looks at an installation and a properties file before the broker is started."""
