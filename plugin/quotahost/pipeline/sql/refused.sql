-- The refused records -> dead letters: the beginning of the record, and as headers its reason, its place, its key and how
-- long it was. With a value of any length a letter could exceed what Kafka takes, and its batch would fail for ever.
-- After a crash a letter may be written again, under the same key.
SELECT concat_ws('-', topic, partition, offset) AS key, substring(value, 1, {value_bytes}) AS value,
  array(
    struct('reason' AS key, binary(reason) AS value),
    struct('topic' AS key, binary(topic) AS value),
    struct('partition' AS key, binary(string(partition)) AS value),
    struct('offset' AS key, binary(string(offset)) AS value),
    struct('size' AS key, binary(string(octet_length(value))) AS value),
    struct('key' AS key, substring(binary(broker), 1, {key_bytes}) AS value)) AS headers
FROM (
  SELECT topic, partition, offset, value, broker, error AS reason FROM {parsed} WHERE error IS NOT NULL
  UNION ALL
  SELECT topic, partition, offset, value, brokerId, error FROM {usage} WHERE error IS NOT NULL)
