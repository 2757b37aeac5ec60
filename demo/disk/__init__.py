"""The demo's second part: a disk that fills and is emptied again, on one broker."""
