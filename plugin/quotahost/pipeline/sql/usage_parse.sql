-- Records of the usage topic -> one row each; `error` is null where the record is taken.
-- The generator is a barrier: without it the optimizer copies the parse into each column that reads a field of it.
WITH parsed AS (
  SELECT key, value, topic, partition, offset, timestamp, try_validate_utf8(string(key)) AS k, u
  FROM {raw} LATERAL VIEW explode(array(from_json(
    -- A value that is too large is not even parsed.
    if(octet_length(value) <= :bytes, try_validate_utf8(string(value)), NULL), :schema,
    {json_options}))) AS u),
timed AS (
  SELECT *, if(u.usageAt RLIKE :time, try_to_timestamp(u.usageAt), NULL) AS at FROM parsed)
SELECT coalesce(nullif(u.clusterId, ''), :cluster) AS clusterId, k AS brokerId, {seen_at} AS ts, value IS NULL AS removed,
  coalesce(u.clients, array()) AS clients,
  CASE
    WHEN k IS NULL THEN 'key: the record has none, or one that is no text'
    WHEN char_length(k) > :name THEN 'key: too long'
    WHEN value IS NULL THEN NULL
    WHEN octet_length(value) > :bytes THEN 'size: the record is too large'
    WHEN {long_number} THEN 'json: a number is too long'
    -- Another version may differ in any field, so its version is reported before anything else.
    WHEN u.version <> :version THEN 'version: another one'
    WHEN u IS NULL OR u._corrupt IS NOT NULL THEN 'json: malformed, or a field of another type'
    WHEN ({more_braces} OR contains(string(value), '\\u')) AND NOT {is_json} THEN 'json: malformed, or text after it'
    WHEN u.version IS NULL THEN 'version: missing'
    WHEN u.brokerId IS NULL OR u.brokerId <> k THEN 'key: it is not the brokerId'
    WHEN char_length(u.clusterId) > :name THEN 'schema: an id is too long'
    WHEN u.clusterId <> '' AND u.clusterId <> :cluster THEN 'cluster: not the one of the topic'
    WHEN at IS NULL THEN 'schema: usageAt is missing or no date-time'
    WHEN u.clients IS NULL THEN 'schema: clients are missing'
    WHEN size(u.clients) > :clients THEN 'schema: too many clients'
    -- A missing field makes the condition null, hence coalesce. For Spark NaN exceeds infinity, so it is refused, too.
    WHEN exists(u.clients, c -> NOT coalesce(
        c.user IS NOT NULL AND c.clientId IS NOT NULL AND c.quotaType IN ('PRODUCE', 'FETCH')
        AND c.rate >= 0 AND c.rate < double('Infinity') AND c.quota > 0 AND c.quota < double('Infinity')
        AND (c.demand IS NULL OR c.demand >= 0 AND c.demand < double('Infinity'))
        AND (c.bytes IS NULL OR c.bytes >= 0 AND c.bytes < double('Infinity')), false))
      THEN 'schema: a client lacks a name or type, or has a wrong number'
    WHEN size(array_distinct(transform(u.clients, c -> struct(c.user, c.clientId, c.quotaType)))) <> size(u.clients)
      THEN 'schema: a client is listed more than once'
    WHEN aggregate(u.clients, 0L, (sum, c) -> sum + octet_length(c.user) + octet_length(c.clientId)) > :names
      THEN 'size: the names are too long'
  END AS error,
  key, value, topic, partition, offset, timestamp
FROM timed
