"""``quotahost top``: who uses what right now, who is held back, and by what. ``top`` is the command."""
