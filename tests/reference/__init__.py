"""Plain models of parts of the product that are written in SQL or Java; tests compare the two."""
