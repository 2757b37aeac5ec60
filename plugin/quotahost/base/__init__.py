"""What every room stands on: errors and texts for people, and threads and log lines that no fault multiplies."""
