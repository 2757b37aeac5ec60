-- This query makes dead letters of the refused records. A letter has the first bytes of the record's value, and headers
-- with the reason, topic, partition, offset, size and key. The value is cut, because a letter larger than Kafka accepts
-- would make its batch fail forever. After a crash the query may write a letter again, with the same key.
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
