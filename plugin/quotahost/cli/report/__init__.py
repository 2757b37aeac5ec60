"""``quotahost report``: draws the history of the volumes."""
