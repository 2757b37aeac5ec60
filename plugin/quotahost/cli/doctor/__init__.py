"""``quotahost doctor`` checks an installation and a properties file before an operator starts the broker."""
