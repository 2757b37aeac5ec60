"""Real clients that put load on a broker, and what is measured about them."""
