"""The loop from disks to clients with several brokers, by seeds: the scenes, the possible events, and the checks."""
