"""Plain Python models of what the product does in other ways (SQL, Java, Kafka). Tests compare the two."""
