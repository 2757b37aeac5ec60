-- The good snapshots -> the newest of each broker (none of one with a tombstone), and what its volumes consumed a while
-- before: one row for each volume, one row without a volume for a broker that has none. Kafka compacts the topic by the
-- same key. `now` is the time at which Spark looked up the batch's offsets: by a later time a slow batch would make brokers
-- stale, and a batch that is done again has the same. max_by, because max would compare each field of each volume, and Spark writes Java for that in each batch.
WITH placed AS (
  SELECT topic, broker, seen, offset, removed,
    struct(cluster, s.softLimit AS soft, s.hardLimit AS hard, s.volumes AS volumes, s.offlineLogDirs AS offline, s.budgets AS budgets) AS s,
    struct(seen, s.volumes.volumeName AS names, s.volumes.consumed AS consumed) AS past,
    -- Of the newest period the first snapshot: max_by takes the largest, so time and offset are negated. A period is known
    -- by its beginning and not by its number: numbers by a longer window would never be larger than those in a checkpoint.
    struct(unix_millis(seen) div {window} * {window} AS period, -unix_micros(seen) AS early, -offset AS low) AS first
  FROM {good}),
brokers AS (  -- broker first: Spark sorts by the first bytes of the first column, and topics are all alike
  SELECT topic, broker, max_by(struct(seen, removed, s), struct(seen, offset)) AS newest, max(seen) FILTER (WHERE removed) AS gone,
    -- The first snapshot of a period: of the last even and of the last odd one in which the broker reported. The older of
    -- the two lies one to two windows back.
    max_by(past, first) FILTER (WHERE NOT removed AND pmod(first.period div {window}, 2) = 0) AS even,
    max_by(past, first) FILTER (WHERE NOT removed AND pmod(first.period div {window}, 2) = 1) AS odd
  FROM placed GROUP BY broker, topic),
aged AS (
  SELECT topic, broker, newest.seen AS seen, newest.s AS s, gone, if(odd IS NULL OR even.seen < odd.seen, even, odd) AS past
  FROM brokers WHERE NOT newest.removed),
spread AS (  -- a broker that comes back after a tombstone begins a new history
  SELECT topic, left(broker, {max_name}) AS broker, seen, s.cluster AS cluster, if(size(s.offline) > 0, s.offline, NULL) AS offline, s.budgets AS budgets,
    s.soft.type AS softType, s.soft.level AS softLevel, s.hard.type AS hardType, s.hard.level AS hardLevel,
    past.names AS names, past.consumed AS before,
    if(gone IS NULL OR gone < past.seen, double(unix_micros(seen) - unix_micros(past.seen)) / 1000000D, NULL) AS passed,
    posexplode_outer(s.volumes) AS (pos, v)
  FROM aged)
SELECT broker, cluster, seen, coalesce(pos, 0) = 0 AS first, if(coalesce(pos, 0) = 0, offline, NULL) AS offline, if(coalesce(pos, 0) = 0, budgets, NULL) AS budgets,
  v.volumeName AS volumeName, v.capacity AS capacity, v.consumed AS consumed, v.topics AS topics,
  -- Type and level are taken together: a level of the broker's must not meet a type of the volume's.
  coalesce(v.softLimit.type, softType) AS softType, if(v.softLimit.type IS NULL, softLevel, v.softLimit.level) AS softLevel,
  coalesce(v.hardLimit.type, hardType) AS hardType, if(v.hardLimit.type IS NULL, hardLevel, v.hardLimit.level) AS hardLevel,
  -- A volume mostly keeps its place in the list, so the search by name is needed only where volumes came or went.
  CASE WHEN passed > 0 THEN double(v.consumed - if(get(names, pos) = v.volumeName, get(before, pos),
    get(before, CAST(coalesce(nullif(array_position(names, v.volumeName), 0) - 1, -1) AS INT)))) / passed END AS fillRate,
  topic, {now} AS now
FROM spread
