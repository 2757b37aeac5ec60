-- The newest snapshots of each broker, newest first; Kafka compacts the topic by the same key.
SELECT topic, broker,
  max_by(struct(seen, removed, s), struct(seen, offset), {samples}) AS h
FROM {good} GROUP BY topic, broker
