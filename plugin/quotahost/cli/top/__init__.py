"""``quotahost top`` shows what clients use now, which clients are held back, and by what."""
