"""The plugins that come with quotahost; entry points register them by name, like all other plugins."""
