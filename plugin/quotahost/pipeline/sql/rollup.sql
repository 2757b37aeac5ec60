-- The volumes of all brokers -> one row for each cluster: fill, smallest factor, worst volumes, and which brokers are stale,
-- missing or expired. In one pass: Spark would compute a second use of them again.
WITH timed AS (
  SELECT *, coalesce(nullif(cluster, ''), :cluster) AS clusterId, unix_millis(now) + :ahead AS at
  -- What came by a topic that isn't read any more would list each broker once more, as one that is stale.
  FROM {state} WHERE :topics = '[]' OR array_contains(from_json(:topics, 'ARRAY<STRING>'), topic)),
listed AS (  -- as columns: Spark doesn't compile what an aggregate computes from its input itself
  SELECT clusterId AS cluster, broker, seen, offline, budgets,
    -- A broker that is expired is neither counted nor named: only what it had last is told.
    seen < timestamp_millis(at - :expiry) AS expired, first AND seen >= timestamp_millis(at - :expiry) AS first,
    capacity, consumed, softType, softLevel, hardType, hardLevel, at AS now, topics,
    if(topics IS NULL, NULL, struct(-consumed AS k, broker, volumeName)) AS teller,
    if(topics IS NULL, NULL, struct(consumed, topics)) AS told,
    seen >= timestamp_millis(at - :validity) AS fresh,
    -- The negated consumption comes first: the smallest structs are the fullest volumes.
    if(volumeName IS NULL OR seen < timestamp_millis(at - :validity), NULL, struct(-consumed AS k, broker, volumeName, fillRate)) AS item,
    -- What a silent broker had last, however long ago: only its readers know whether it is fenced, so that this still counts.
    if(volumeName IS NULL OR seen >= timestamp_millis(at - :validity), NULL, struct(-consumed AS k, broker, volumeName, fillRate)) AS last
  FROM timed),
kinds AS (  -- of volumes of one capacity with the same limits, the one that consumes more is nearer to any limit
  SELECT cluster, now, capacity, softType, softLevel, hardType, hardLevel, expired,
    count_if(first AND NOT fresh) AS stale,
    collect_list(broker) FILTER (WHERE first AND fresh) AS reporting, collect_list(broker) FILTER (WHERE first AND NOT fresh) AS staleBrokers,
    -- Of the own cluster alone, since only its registered brokers are known.
    collect_list(broker) FILTER (WHERE first AND cluster = :cluster) AS known,
    collect_list(struct(broker, offline)) FILTER (WHERE offline IS NOT NULL AND fresh) AS offline,
    collect_list(struct(broker, fresh, budgets)) FILTER (WHERE budgets IS NOT NULL AND NOT expired) AS budgets,
    max(seen) FILTER (WHERE NOT expired) AS newest, count(item) AS volumes,
    -- in two halves: a sum of decimals makes an object for each row, a sum of whole numbers could overflow
    sum(shiftright(consumed, 31)) FILTER (WHERE fresh) AS usedHigh, sum(consumed & 2147483647) FILTER (WHERE fresh) AS usedLow,
    min_by(item, item, {worst}) FILTER (WHERE item IS NOT NULL) AS items,
    min_by(last, last, {worst}) FILTER (WHERE last IS NOT NULL) AS lasts,
    max(consumed) FILTER (WHERE topics IS NULL) AS untold, count(told) AS tellers,
    min_by(told, teller, {tellers}) FILTER (WHERE told IS NOT NULL) AS told
  FROM listed GROUP BY cluster, now, capacity, softType, softLevel, hardType, hardLevel, expired),
named AS (
  -- Decimals: 10,000 brokers may have more than 2**63 bytes.
  SELECT *, capacity * CAST(volumes AS DECIMAL(28, 0)) AS total, 2147483648 * CAST(usedHigh AS DECIMAL(28, 0)) + usedLow AS used,
    if(softType IS NULL, NULL, struct(softType AS type, softLevel AS level)) AS softLimit,
    if(hardType IS NULL, NULL, struct(hardType AS type, hardLevel AS level)) AS hardLimit
  FROM kinds),
bounded AS (
  SELECT *, transform(items, v -> struct(v.k, v.broker AS brokerId, left(v.volumeName, {max_name}) AS volumeName,
      capacity, -v.k AS consumed, softLimit, hardLimit, v.fillRate AS bytesPerSecond, {seconds_to_full} AS secondsToFull)) AS top,
    transform(lasts, (v, i) -> struct(v.k, v.broker AS brokerId, left(v.volumeName, {max_name}) AS volumeName,
      capacity, -v.k AS consumed, softLimit, hardLimit, v.fillRate AS bytesPerSecond, {seconds_to_full} AS secondsToFull, i AS place)) AS silent,
    -- A soft limit alone falls towards the capacity. One that lies beyond the hard limit counts as the hard limit.
    coalesce({hard_at}, capacity) AS hardAt, least({soft_at}, coalesce({hard_at}, capacity)) AS softAt FROM named),
-- The factor of the policy `limits`, of the fullest volume: one that consumes less has no smaller factor. It only decides
-- which kinds are listed; pipeline/cluster.py computes it again.
rated AS (
  SELECT *, {factor} AS factor, {silent_factor} AS silentFactor,
    -- Whether a volume above its soft limit doesn't tell its topics; a kind without limits has none above it.
    coalesce(tellers > {tellers} OR (softLimit IS NOT NULL OR hardLimit IS NOT NULL) AND (untold > softAt OR untold >= hardAt), FALSE) AS anyTopic,
    if(tellers = 0 OR softLimit IS NULL AND hardLimit IS NULL, NULL, slice(array_distinct(flatten(transform(
      filter(told, t -> t.consumed > softAt OR t.consumed >= hardAt), t -> t.topics))), 1, {topics} + 1)) AS topics
  FROM bounded),
clusters AS (
  SELECT cluster, max(now) AS now, sum(stale) AS stale, from_json(:registered, 'ARRAY<STRING>') AS running,
    -- Of the own cluster it is known which brokers are in service, but while it has not answered.
    cluster = :cluster AND :registered <> '[]' AS knows,
    flatten(collect_list(reporting)) AS reporting, flatten(collect_list(staleBrokers)) AS staleBrokers,
    -- Stale brokers are known, so no broker counts as stale and as missing.
    array_except(running, flatten(collect_list(known))) AS missing,
    flatten(transform(filter(flatten(collect_list(offline)), o -> NOT knows OR array_contains(running, o.broker)),
      o -> transform(o.offline, d -> struct(o.broker AS brokerId, left(d, {max_name}) AS logDir)))) AS offline,
    flatten(collect_list(budgets)) AS budgets,
    bool_or(anyTopic) OR count_if(size(topics) > 0) > {tellers} AS anyTopic,
    coalesce(array_distinct(flatten(min_by(topics, capacity, {tellers}) FILTER (WHERE size(topics) > 0))), array()) AS topics,
    max(newest) AS newest, sum(volumes) AS volumeCount,
    coalesce(sum(total), 0) AS capacity, coalesce(sum(used), 0) AS consumed,
    -- Names are the last criterion, so that a batch that is done again lists the same volumes. collect_list leaves out
    -- the null of a kind without a fresh volume; get gives null for an empty list, where top[0] is an error.
    array_sort(collect_list(if(size(top) > 0, struct(factor, {kind_free_share} AS a, get(top, 0).k AS b, get(top, 0).brokerId, get(top, 0).volumeName,
      softLimit IS NOT NULL AND hardLimit IS NOT NULL AS judged, get(top, 0) AS v), NULL))) AS byFactor,
    flatten(collect_list(top)) AS tops, flatten(collect_list(transform(silent, v -> struct(expired, v.place, silentFactor, v)))) AS silent
  FROM rated GROUP BY cluster),
-- Half of the list: the smallest factors. The other half: the least free share, and first kinds that lack a limit, which
-- brokers judge by their own.
cut AS (
  SELECT *, concat(slice(byFactor, 1, {half}).v, slice(array_sort(transform(slice(byFactor, {half} + 1, size(byFactor)),
    x -> struct(x.judged, x.a, x.b, x.brokerId, x.volumeName, x.v))), 1, {half}).v) AS fullest
  FROM clusters)
-- The record itself, with the fields of quotahost.records.cluster_volumes; Python adds what is left out here.
SELECT cluster,
  budgets,  -- added up in pipeline/cluster.py
  to_json(struct(1 AS version, cluster AS clusterId, 0 AS run, 0 AS sequence,
    timestamp_millis(now) AS computedAt, newest AS newestSnapshotAt,
    size(if(knows, array_intersect(reporting, running), reporting)) AS reporting, stale,
    if(cluster = :cluster, size(missing), 0) AS missing,
    -- The first ids only: a record of 10,000 silent brokers must stay small. Those in service come first.
    slice(if(knows, concat(array_sort(array_intersect(staleBrokers, running)), array_sort(array_except(staleBrokers, running))),
      array_sort(staleBrokers)), 1, {listed}) AS staleBrokers,
    if(cluster = :cluster, slice(array_sort(missing), 1, {listed}), array()) AS missingBrokers,
    size(offline) AS offline, slice(array_sort(offline), 1, {listed}) AS offlineLogDirs,
    volumeCount, capacity, consumed, size(byFactor) AS kinds,
    if(anyTopic OR size(topics) > {topics}, NULL, array_sort(topics)) AS affectedTopics,
    slice(array_sort(transform(fullest, v -> struct({free_share} AS a, v.k AS b, v.brokerId, v.volumeName, v))), 1, {listed}).v AS fullest,
    slice(array_sort(transform(silent, s -> struct(s.expired, s.place, s.silentFactor, {silent_free_share} AS a, s.v.k AS b, s.v.brokerId, s.v.volumeName, s.v))), 1, {listed}).v AS silentVolumes,
    struct(
      slice(array_sort(transform(tops, v -> struct(v.k AS b, v.brokerId, v.volumeName, v))), 1, {worst}).v AS ConsumedBytes,
      slice(array_sort(transform(tops, v -> struct(v.capacity - v.consumed AS a, v.k AS b, v.brokerId, v.volumeName, v))), 1, {worst}).v AS MinFreeBytes,
      slice(array_sort(transform(tops, v -> struct({free_share} AS a, v.k AS b, v.brokerId, v.volumeName, v))), 1, {worst}).v AS MinFreePercentage
    ) AS worst)) AS record
FROM cut WHERE newest IS NOT NULL  -- a cluster whose brokers have all expired has no record
