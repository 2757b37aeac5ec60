"""Plain models of what the product does in other ways, to which tests compare it."""
