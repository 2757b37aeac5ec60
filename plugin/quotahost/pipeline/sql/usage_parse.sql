-- This query makes one row of each record of the usage topic; `error` is null for a good record, else the reason for
-- refusing it. explode is a barrier: without it the optimizer copies from_json into each column that reads its result.
WITH parsed AS (
  SELECT key, value, topic, partition, offset, timestamp, try_validate_utf8(string(key)) AS k, u
  FROM {raw} LATERAL VIEW explode(array(from_json(
    -- A value that is too large isn't parsed.
    if(octet_length(value) <= :bytes, try_validate_utf8(string(value)), NULL), :schema,
    {json_options}))) AS u),
timed AS (
  SELECT *, if(u.usageAt RLIKE :time, try_to_timestamp(u.usageAt), NULL) AS at FROM parsed)
SELECT coalesce(nullif(u.clusterId, ''), :cluster) AS clusterId, k AS brokerId, {seen_at} AS ts, value IS NULL AS removed,
  coalesce(u.clients, array()) AS clients,
  CASE
    WHEN k IS NULL OR char_length(k) > :name THEN 'key'
    WHEN value IS NULL THEN NULL
    WHEN octet_length(value) > :bytes THEN 'size'
    -- A record of another version may differ in any field, so the version is checked before the fields.
    WHEN u.version <> :version THEN 'version'
    WHEN u IS NULL OR u._corrupt IS NOT NULL THEN 'json'
    WHEN ({more_braces} OR contains(string(value), '\\u')) AND NOT {is_json} THEN 'json'
    WHEN u.version IS NULL THEN 'version'
    WHEN u.brokerId IS NULL OR u.brokerId <> k THEN 'key'
    WHEN char_length(u.clusterId) > :name THEN 'schema'
    WHEN u.clusterId <> '' AND u.clusterId <> :cluster THEN 'cluster'
    WHEN at IS NULL OR u.clients IS NULL OR size(u.clients) > :clients THEN 'schema'
    -- A missing field makes the condition null, hence coalesce. In Spark NaN is larger than infinity, so NaN is refused.
    WHEN exists(u.clients, c -> NOT coalesce(
        c.user IS NOT NULL AND c.clientId IS NOT NULL AND c.quotaType IN ('PRODUCE', 'FETCH')
        AND c.rate >= 0 AND c.rate < double('Infinity') AND c.quota > 0 AND c.quota < double('Infinity')
        AND (c.demand IS NULL OR c.demand >= 0 AND c.demand < double('Infinity'))
        AND (c.bytes IS NULL OR c.bytes >= 0 AND c.bytes < double('Infinity')), false)) THEN 'schema'
    WHEN size(array_distinct(transform(u.clients, c -> struct(c.user, c.clientId, c.quotaType)))) <> size(u.clients)
      THEN 'schema'
    WHEN aggregate(u.clients, 0L, (sum, c) -> sum + octet_length(c.user) + octet_length(c.clientId)) > :names
      THEN 'size'
  END AS error,
  key, value, topic, partition, offset, timestamp
FROM timed
