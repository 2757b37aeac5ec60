"""All other packages use these modules: errors and texts for people, daemon threads, and limited log lines."""
