-- The good snapshots with the limits of each volume: its own, else its broker's.
SELECT topic, partition, offset, timestamp, cluster, broker,
  -- By Kafka's clock where the broker's is far off: the day names a folder of the history.
  if(at BETWEEN timestamp - INTERVAL 1 DAY AND timestamp + INTERVAL 1 HOUR, at, timestamp) AS at, removed, s.offlineLogDirs AS offline,
  transform(s.volumes, v -> struct(v.volumeName AS name, v.capacity AS capacity, v.consumed AS consumed,
    -- A limit without fields is none. Spark reads it as a struct of nulls, which coalesce would take for a limit.
    if(v.softLimit.type IS NOT NULL, v.softLimit, if(s.softLimit.type IS NOT NULL, s.softLimit, NULL)) AS soft,
    if(v.hardLimit.type IS NOT NULL, v.hardLimit, if(s.hardLimit.type IS NOT NULL, s.hardLimit, NULL)) AS hard)) AS volumes
FROM {parsed} WHERE error IS NULL
