"""The machine around the brokers: processes, ports, file systems, networks that fail, logs, waiting."""
