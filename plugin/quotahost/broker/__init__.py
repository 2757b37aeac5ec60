"""What runs inside a broker: the host, the plugins that come with quotahost, and how both are found and see disks."""
