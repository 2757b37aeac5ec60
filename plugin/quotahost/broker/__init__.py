"""What runs inside a broker: the host, the plugins that come with quotahost, how they are found, disks, metrics."""
