-- The refused records -> dead letters: the record as it was, and as headers its reason, its place and its key.
-- After a crash a letter may be written again: under this key compaction keeps one.
SELECT concat_ws('-', topic, partition, offset) AS key, value,
  array(
    struct('reason' AS key, binary(reason) AS value),
    struct('topic' AS key, binary(topic) AS value),
    struct('partition' AS key, binary(string(partition)) AS value),
    struct('offset' AS key, binary(string(offset)) AS value),
    struct('key' AS key, binary(broker) AS value)) AS headers
FROM (
  SELECT topic, partition, offset, value, broker, error AS reason FROM {parsed} WHERE error IS NOT NULL
  UNION ALL
  -- Errors of usage are "reason: text"; the header has the reason alone, as for snapshots.
  SELECT topic, partition, offset, value, brokerId, split_part(error, ':', 1) FROM {usage} WHERE error IS NOT NULL)
