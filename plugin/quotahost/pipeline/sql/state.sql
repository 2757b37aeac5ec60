-- The newest snapshots of each broker, newest first; Kafka compacts the topic by the same key. `now` is when the batch's
-- offsets were looked up: by a later time a slow batch would make brokers stale, and a batch done again has it again.
-- Spark sorts by the group's columns, and compares first the first bytes of the first: topics are all alike.
SELECT topic, broker, h, current_timestamp() AS now
FROM (
  SELECT topic, broker, max_by(struct(seen, removed, s), struct(seen, offset), {samples}) AS h
  FROM {good} GROUP BY broker, topic)
