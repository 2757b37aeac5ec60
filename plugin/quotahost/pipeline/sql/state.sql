-- This query keeps the latest good snapshot of each broker (none after a tombstone), and the consumption of its volumes a
-- while before: one row for each volume, one row without a volume for a broker that has none. Kafka compacts the topic by
-- the same key. `now` is the time at which Spark looked up the batch's offsets: with a later time a slow batch would make
-- brokers stale, and a repeated batch has the same time. The query uses max_by, because max would compare each field of
-- each volume, and Spark would generate Java code for that in each batch.
WITH placed AS (
  SELECT topic, broker, seen, offset, removed,
    struct(cluster, s.softLimit AS soft, s.hardLimit AS hard, s.volumes AS volumes, s.offlineLogDirs AS offline, s.budgets AS budgets) AS s,
    struct(seen, s.volumes.volumeName AS names, s.volumes.consumed AS consumed) AS past,
    -- max_by takes the first snapshot of the latest period, so time and offset are negated. The start of a period
    -- identifies it: with a longer window, period numbers would be smaller than the numbers in an old checkpoint.
    struct(unix_millis(seen) div {window} * {window} AS period, -unix_micros(seen) AS early, -offset AS low) AS first
  FROM {good}),
brokers AS (  -- the broker comes first, because Spark sorts by the first bytes of the first column, and topics are alike
  SELECT topic, broker, max_by(struct(seen, removed, s), struct(seen, offset)) AS latest, max(seen) FILTER (WHERE removed) AS gone,
    -- These are the first snapshots of the last even and of the last odd period in which the broker reported. The older
    -- snapshot lies one to two windows back.
    max_by(past, first) FILTER (WHERE NOT removed AND pmod(first.period div {window}, 2) = 0) AS even,
    max_by(past, first) FILTER (WHERE NOT removed AND pmod(first.period div {window}, 2) = 1) AS odd
  FROM placed GROUP BY broker, topic),
aged AS (
  SELECT topic, broker, latest.seen AS seen, latest.s AS s, gone, if(odd IS NULL OR even.seen < odd.seen, even, odd) AS past
  FROM brokers WHERE NOT latest.removed),
spread AS (  -- a broker that returns after a tombstone starts without earlier snapshots
  SELECT topic, left(broker, {max_name}) AS broker, seen, s.cluster AS cluster, if(size(s.offline) > 0, s.offline, NULL) AS offline, s.budgets AS budgets,
    s.soft.type AS softType, s.soft.level AS softLevel, s.hard.type AS hardType, s.hard.level AS hardLevel,
    past.names AS names, past.consumed AS before,
    if(gone IS NULL OR gone < past.seen, double(unix_micros(seen) - unix_micros(past.seen)) / 1000000D, NULL) AS passed,
    posexplode_outer(s.volumes) AS (pos, v)
  FROM aged)
SELECT broker, cluster, seen, coalesce(pos, 0) = 0 AS first, if(coalesce(pos, 0) = 0, offline, NULL) AS offline, if(coalesce(pos, 0) = 0, budgets, NULL) AS budgets,
  v.volumeName AS volumeName, v.capacity AS capacity, v.consumed AS consumed, v.topics AS topics,
  -- Type and level come from the same limit: a broker's level must not be combined with a volume's type.
  coalesce(v.softLimit.type, softType) AS softType, if(v.softLimit.type IS NULL, softLevel, v.softLimit.level) AS softLevel,
  coalesce(v.hardLimit.type, hardType) AS hardType, if(v.hardLimit.type IS NULL, hardLevel, v.hardLimit.level) AS hardLevel,
  -- A volume usually keeps its place in the list, so the search by name is needed only after volumes came or went.
  CASE WHEN passed > 0 THEN double(v.consumed - if(get(names, pos) = v.volumeName, get(before, pos),
    get(before, CAST(coalesce(nullif(array_position(names, v.volumeName), 0) - 1, -1) AS INT)))) / passed END AS fillRate,
  topic, {now} AS now
FROM spread
