-- The state of all brokers -> one row for each cluster, in one pass: a second use of the state would compute it twice.
WITH timed AS (
  SELECT broker, h, unix_millis(now) + :ahead AS now FROM {state} WHERE NOT h[0].removed),
newest AS (  -- history ends at a tombstone: who comes back begins anew
  SELECT now, coalesce(nullif(h[0].s.clusterId, ''), :cluster) AS cluster, left(broker, {max_name}) AS broker, h[0].seen AS seen,
    h[0].seen >= timestamp_millis(now - :validity) AS fresh, h[0].s AS s,
    get(h, coalesce(nullif(array_position(h.removed, TRUE), 0) - 2, size(h) - 1)) AS old
  FROM timed
  WHERE h[0].seen >= timestamp_millis(now - :expiry)),
spread AS (
  SELECT now, cluster, broker, fresh, seen, s.softLimit AS soft, s.hardLimit AS hard, old.s.volumes AS before,
    double(unix_millis(seen) - unix_millis(old.seen)) / 1000D AS passed,
    if(fresh AND s.offlineLogDirs IS NOT NULL,
       transform(s.offlineLogDirs, d -> struct(broker, left(d, {max_name}) AS logDir)), NULL) AS offline,
    posexplode_outer(if(fresh, s.volumes, NULL)) AS (pos, v)
  FROM newest),
volumes AS (
  SELECT *, coalesce(pos, 0) = 0 AS first, v.capacity AS capacity, v.consumed AS consumed,
    if(v.softLimit.type IS NOT NULL, v.softLimit, if(soft.type IS NOT NULL, soft, NULL)) AS softLimit,
    if(v.hardLimit.type IS NOT NULL, v.hardLimit, if(hard.type IS NOT NULL, hard, NULL)) AS hardLimit,
    CASE WHEN passed > 0 THEN (double(v.consumed) - double(
      if(get(before, pos).volumeName = v.volumeName, get(before, pos),
         get(filter(before, x -> x.volumeName = v.volumeName), 0)).consumed)) / passed END AS fill
  FROM spread),
listed AS (  -- as columns: what an aggregate makes of its input by itself isn't compiled
  SELECT *, if(v IS NULL, NULL, struct(-consumed, broker, v.volumeName)) AS place,
    struct(-consumed AS k, broker, left(v.volumeName, {max_name}) AS volumeName, capacity, consumed, softLimit, hardLimit, fill) AS item
  FROM volumes),
kinds AS (  -- of volumes of one capacity with the same limits, who consumes more is nearer to any limit
  SELECT cluster, capacity, softLimit, hardLimit, max(now) AS now,
    count_if(first AND fresh) AS reporting, count_if(first AND NOT fresh) AS stale,
    min_by(broker, broker, {listed}) FILTER (WHERE first AND NOT fresh) AS staleBrokers,
    collect_list(broker) FILTER (WHERE first AND cluster = :cluster) AS known,
    flatten(collect_list(offline) FILTER (WHERE first)) AS offline,
    max(seen) AS newest, count(v) AS volumes, sum(CAST(capacity AS DECIMAL(28, 0))) AS total, sum(CAST(consumed AS DECIMAL(28, 0))) AS used,
    min_by(item, place, {worst}) FILTER (WHERE place IS NOT NULL) AS top
  FROM listed GROUP BY cluster, capacity, softLimit, hardLimit),
bounded AS (
  SELECT *, least({hard_at}, capacity) AS hardAt, least({soft_at}, least({hard_at}, capacity)) AS softAt FROM kinds),
rated AS (
  SELECT *, CASE
    WHEN softLimit IS NULL AND hardLimit IS NULL OR top IS NULL OR size(top) = 0 THEN NULL
    WHEN top[0].consumed >= hardAt THEN 0D
    WHEN top[0].consumed <= softAt THEN 1D
    ELSE double(hardAt - top[0].consumed) / double(hardAt - softAt) END AS factor
  FROM bounded),
clusters AS (
  SELECT cluster, max(now) AS now, sum(reporting) AS reporting, sum(stale) AS stale,
    slice(array_sort(flatten(collect_list(staleBrokers))), 1, {listed}) AS staleBrokers,
    array_except(from_json(:registered, 'ARRAY<STRING>'), flatten(collect_list(known))) AS missing,
    flatten(collect_list(offline)) AS offline, max(newest) AS newest, sum(volumes) AS volumeCount,
    coalesce(sum(total), 0) AS capacity, coalesce(sum(used), 0) AS consumed, min(factor) AS smallestFactor,
    collect_list(get(top, 0)) AS fullest, flatten(collect_list(top)) AS tops
  FROM rated GROUP BY cluster)
SELECT cluster, now, reporting, stale, staleBrokers, newest, volumeCount, capacity, consumed, smallestFactor,
  if(cluster = :cluster, size(missing), 0) AS missing,
  if(cluster = :cluster, slice(array_sort(missing), 1, {listed}), array()) AS missingBrokers,
  size(offline) AS offline, slice(array_sort(offline), 1, {listed}) AS offlineLogDirs,
  slice(array_sort(transform(fullest, v -> struct({free_share} AS a, v.k AS b, v.broker, v.volumeName, v))), 1, {listed}).v AS fullest,
  slice(array_sort(transform(tops, v -> struct(v.k AS b, v.broker, v.volumeName, v))), 1, {worst}).v AS ConsumedBytes,
  slice(array_sort(transform(tops, v -> struct(v.capacity - v.consumed AS a, v.k AS b, v.broker, v.volumeName, v))), 1, {worst}).v AS MinFreeBytes,
  slice(array_sort(transform(tops, v -> struct({free_share} AS a, v.k AS b, v.broker, v.volumeName, v))), 1, {worst}).v AS MinFreePercentage
FROM clusters
