"""The plugins that come with quotahost; entry points register them by name, like the plugins of anybody else."""
