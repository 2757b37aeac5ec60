"""A plain Python model of a part of the product that is written in SQL; tests compare the two."""
