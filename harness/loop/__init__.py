"""The loop from disks to clients with several brokers, by seeds: the scenes, what may happen, and what must hold."""
