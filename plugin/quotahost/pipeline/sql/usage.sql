-- This query keeps the latest good usage record of each broker, tombstones included.
SELECT topic, u.clusterId AS clusterId, brokerId, u.ts AS ts, u.removed AS removed, u.clients AS clients
FROM (
  SELECT topic, brokerId, max_by(struct(clusterId, ts, removed, clients), struct(timestamp, offset)) AS u
  FROM {good} GROUP BY topic, brokerId)
