-- This query reduces the volumes of all brokers to a few rows for each cluster, with the columns of Kind in
-- pipeline/cluster.py: one row for the volumes with the same capacity and limits. The fullest is the nearest to any limit.
WITH timed AS (
  SELECT *, unix_millis(now) + :ahead AS at FROM {state}),
listed AS (  -- these are columns, because Spark doesn't compile expressions inside an aggregate
  SELECT cluster, broker, seen, offline, budgets,
    -- An expired broker is neither counted nor named; only its last volumes are kept.
    seen < timestamp_millis(at - :expiry) AS expired, first AND seen >= timestamp_millis(at - :expiry) AS first,
    capacity, consumed, softType, softLevel, hardType, hardLevel, at, topics,
    if(topics IS NULL, NULL, struct(-consumed AS k, broker, volumeName)) AS teller,
    if(topics IS NULL, NULL, struct(consumed, to_json(topics))) AS told,
    seen >= timestamp_millis(at - :validity) AS fresh,
    -- The negated consumption comes first, so the smallest structs are the fullest volumes.
    if(volumeName IS NULL OR seen < timestamp_millis(at - :validity), NULL, struct(-consumed AS k, broker, volumeName, fillRate)) AS item,
    -- The last volumes of a silent broker are kept at any age: if it is fenced, they still count, and only readers know that.
    if(volumeName IS NULL OR seen >= timestamp_millis(at - :validity), NULL, struct(-consumed AS k, broker, volumeName, fillRate)) AS last
  FROM timed)
SELECT cluster, at, capacity, if(softType IS NULL, NULL, struct(softType, softLevel)) AS soft,
  if(hardType IS NULL, NULL, struct(hardType, hardLevel)) AS hard, expired,
  collect_list(broker) FILTER (WHERE first AND fresh) AS reporting, collect_list(broker) FILTER (WHERE first AND NOT fresh) AS stale,
  collect_list(struct(broker, offline)) FILTER (WHERE offline IS NOT NULL AND fresh) AS offline,
  collect_list(struct(broker, fresh, budgets)) FILTER (WHERE budgets IS NOT NULL AND NOT expired) AS budgets,
  unix_millis(max(seen) FILTER (WHERE NOT expired)) AS latest, count(item) AS volumes,
  -- The sum has two halves: a sum of decimals makes an object for each row, and a sum of BIGINTs could overflow.
  coalesce(sum(shiftright(consumed, 31)) FILTER (WHERE fresh), 0) AS used_high,
  coalesce(sum(consumed & 2147483647) FILTER (WHERE fresh), 0) AS used_low,
  coalesce(min_by(item, item, {worst}) FILTER (WHERE item IS NOT NULL), array()) AS fullest,
  coalesce(min_by(last, last, {worst}) FILTER (WHERE last IS NOT NULL), array()) AS silent,
  max(consumed) FILTER (WHERE topics IS NULL) AS untold, count(told) AS tellers,
  coalesce(min_by(told, teller, {tellers}) FILTER (WHERE told IS NOT NULL), array()) AS told
FROM listed GROUP BY cluster, at, capacity, softType, softLevel, hardType, hardLevel, expired
