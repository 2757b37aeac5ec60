"""Real Kafka nodes and clusters, and what an operator does to them."""
