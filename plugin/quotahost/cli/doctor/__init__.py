"""``quotahost doctor``: looks at an installation and a properties file, and says what is wrong or weak."""
