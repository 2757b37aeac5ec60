-- This query makes one row of each Kafka record of the snapshots topic; `error` is null for a good record, else the reason
-- for refusing it. explode(array(...)) keeps the optimizer from copying from_json into every column that reads its result.
-- Spark doesn't compile lambdas, and in a lambda each field of a struct costs a lookup in the configuration: lambdas took
-- a third of the time. So array functions check first, and a lambda runs only if it is needed.
WITH texts AS (
  SELECT string(key) AS broker, string(value) AS text, value, topic, partition, offset, timestamp,
    {bound} AS bound  -- the cluster that the topic belongs to
  FROM {raw}),
read AS (
  -- If from_json rejects a record, the query rewrites the JSON and reads it again (pipeline/snapshots.py). A lambda that
  -- reads one field costs the other records nothing that could be measured.
  SELECT *, explode(transform(
    array(from_json(text, '{schema}', {json_options})),
    r -> if(r._corrupt IS NULL OR octet_length(text) > {max_bytes} OR NOT {is_json}, r, from_json({plainly}, '{schema}', {json_options})))) AS s
  FROM texts),
timed AS (
  SELECT *, if(s.snapshotAt RLIKE '{date_time}', try_to_timestamp(s.snapshotAt), NULL) AS at,
    -- This is computed once here, because the text below would contain it twice, and Spark plans each batch again.
    if(s._corrupt IS NULL AND octet_length(text) <= {max_bytes} AND ({suspect}), {misread}, NULL) AS misread
  FROM read)
SELECT topic, partition, offset, timestamp, broker, value, at,
  -- Kafka's clock counts: if a broker's clock is ahead, its snapshot would stay the latest; if behind, it would be stale.
  {seen_at} AS seen,
  value IS NULL AS removed, coalesce(nullif(s.clusterId, ''), bound) AS cluster, s,
  -- The first fault is the reason; the order is that of the brokers' checks (records/codec.py).
  CASE
    WHEN broker IS NULL THEN 'key'
    -- The state keeps only the key of a tombstone.
    WHEN value IS NULL THEN if(octet_length(broker) > {max_name} OR NOT is_valid_utf8(broker), 'key', NULL)
    WHEN octet_length(value) > {max_bytes} THEN 'size'
    WHEN NOT is_valid_utf8(text) THEN 'json'
    WHEN s.schemaVersion <> 1 THEN 'version'
    -- from_json doesn't distinguish broken JSON from a field of another type, but brokers do.
    WHEN s._corrupt IS NOT NULL OR s.brokerId IS NULL
      THEN if(try_parse_json(text) IS NOT NULL AND {is_json}, 'schema', 'json')
    WHEN at IS NULL OR s.softLimit IS NULL OR s.hardLimit IS NULL OR s.volumes IS NULL THEN 'schema'
    WHEN size(s.volumes) > {max_volumes} THEN 'volumes'
    WHEN size(s.volumes) > 0 AND (  -- array_contains is null if an item is null
        coalesce(array_contains(s.volumes.capacity, -1) OR array_min(s.volumes.capacity) < 0, TRUE)
        OR coalesce(array_contains(s.volumes.consumed, -1) OR array_min(s.volumes.consumed) < 0, TRUE)
        OR array_contains(s.volumes.volumeName, '') IS NULL
        -- A record of at most max_name bytes has no name that is too long, so most records don't need the lambda.
        OR (octet_length(value) > {max_name} OR array_contains(s.volumes.volumeName, ''))
          AND exists(s.volumes.volumeName, name -> coalesce(length(name) > {max_name}, TRUE))
        -- Only volumes above their soft limit have topics.
        OR array_max(s.volumes.topics) IS NOT NULL AND exists(s.volumes, v -> size(v.topics) > {max_topics}
          OR exists(v.topics, topic -> coalesce(NOT topic RLIKE '{topic_name}', TRUE))))
      OR s.ageMs < 0 OR length(s.brokerId) > {max_name} OR length(s.clusterId) > {max_name}
      OR size(s.offlineLogDirs) > {max_volumes}
      OR size(s.offlineLogDirs) > 0
        AND exists(s.offlineLogDirs, name -> coalesce(length(name) > {max_name}, TRUE)) THEN 'schema'
    -- from_json accepts the number 7 as the text "7", and accepts text after the closing brace; brokers refuse both.
    WHEN misread IS NOT NULL THEN misread
    WHEN broker <> s.brokerId THEN 'key'
    WHEN size(s.volumes) > 1 AND size(array_distinct(s.volumes.volumeName)) < size(s.volumes) THEN 'volumes'
    WHEN {bad_soft} OR {bad_hard}
      -- The lambda runs only if some volume has a limit of its own.
      OR (coalesce(array_max(s.volumes.softLimit.type), array_max(s.volumes.hardLimit.type)) IS NOT NULL
          OR coalesce(array_max(s.volumes.softLimit.level), array_max(s.volumes.hardLimit.level)) IS NOT NULL)
        AND exists(s.volumes, v -> {bad_soft_of_volume} OR {bad_hard_of_volume}) THEN 'limit'
    WHEN timestamp < TIMESTAMP'{oldest}' THEN 'time'
    WHEN s.clusterId <> '' AND s.clusterId <> bound THEN 'cluster'
  END AS error
FROM timed
