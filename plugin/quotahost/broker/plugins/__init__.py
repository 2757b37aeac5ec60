"""The plugins that come with quotahost, registered by entry points as anybody's are, by whose names they are used."""
