-- The newest usage of each broker -> one record of shares for each broker that is not removed. It divides each client's
-- quota as tests/reference/max_min.py does, and reads its input once.
-- Each broker adds a row without a client. The group of these rows lists all brokers, which the window hands to every
-- client; and by it a broker gets a record even where there is no client at all.
WITH brokers AS (
  SELECT clusterId, brokerId, clients, ts >= timestamp_millis(:now - :validity) AS fresh
  FROM {usage} WHERE NOT removed AND ts >= timestamp_millis(:now - :expiry)),
reported AS (
  SELECT clusterId, brokerId, fresh, c
  FROM brokers LATERAL VIEW explode(array_append(if(fresh, clients, array()), NULL)) AS c),
grouped AS (
  -- Sorted by broker as in the plain model: a sum of floats depends on the order.
  SELECT clusterId, c.user, c.clientId, c.quotaType, min(c.quota) AS quota,
    sort_array(collect_list(struct(brokerId, fresh, c.rate, c.demand))) AS uses
  FROM reported GROUP BY clusterId, c.user, c.clientId, c.quotaType),
rated AS (
  SELECT *, aggregate(uses, 0D, (sum, u) -> sum + coalesce(u.rate, 0D)) AS rate,
    coalesce(octet_length(user) + octet_length(clientId), 0) AS names,
    if(user IS NULL, transform(filter(uses, u -> u.fresh), u -> u.brokerId), NULL) AS freshHere,
    if(user IS NULL, transform(filter(uses, u -> NOT u.fresh), u -> u.brokerId), NULL) AS silentHere
  FROM grouped),
ranked AS (
  SELECT clusterId, user, clientId, quotaType, quota, uses, max(freshHere) OVER whole AS fresh,
    max(silentHere) OVER whole AS silent, row_number() OVER busiest AS rank,
    sum(names) OVER busiest AS names
  FROM rated
  WINDOW whole AS (PARTITION BY clusterId),
    -- The row without a client comes first: its rank is 1, hence `:clients + 1` below.
    busiest AS (PARTITION BY clusterId ORDER BY user IS NOT NULL, rate DESC, user, clientId, quotaType
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)),
floored AS (
  SELECT *, quota * :floor / (size(fresh) + size(silent)) AS floor,
    quota - quota * :floor / (size(fresh) + size(silent)) * (size(fresh) + size(silent)) AS rest
  -- The bounds hold for the cluster: all brokers' records list the same clients, so that no sum exceeds the quota.
  FROM ranked WHERE rank <= :clients + 1 AND names <= :names),
wanting AS (
  -- Above the floor; a broker without a stated demand would use whatever it gets.
  SELECT *, transform(uses, u -> if(u.demand IS NULL, rest, least(greatest(u.demand - floor, 0D), rest))) AS wanted
  FROM floored),
levelled AS (
  -- The highest level at which the 0, 1, 2 ... smallest demands are met; a broker that wants more gets the level.
  SELECT *, aggregate(sort_array(wanted), named_struct('level', 0D, 'met', 0D, 'number', 0),
    (a, more) -> named_struct('level', greatest(a.level, (rest - a.met) / (size(wanted) - a.number)),
      'met', a.met + more, 'number', a.number + 1), a -> a.level) AS level
  FROM wanting),
spread AS (
  -- What nobody demands is spread over the brokers that report, so that a client can begin on any of them.
  SELECT *, greatest(0D, rest - aggregate(wanted, 0D, (sum, more) -> sum + least(more, level)))
    / nullif(size(fresh), 0) AS over
  FROM levelled),
given AS (
  SELECT clusterId, rank, user, clientId, quotaType, quota, g.brokerId, g.share
  FROM spread LATERAL VIEW explode(if(user IS NULL,
    transform(concat(fresh, silent), b -> struct(b AS brokerId, 0D AS share)),
    concat(
      -- Brokers that reported the client, other brokers that report, and silent ones, which keep the floor.
      transform(arrays_zip(uses, wanted), z ->
        struct(z.uses.brokerId AS brokerId, (floor + least(z.wanted, level) + over) * :shaved AS share)),
      transform(array_except(fresh, transform(uses, u -> u.brokerId)), b ->
        struct(b AS brokerId, (floor + over) * :shaved AS share)),
      transform(silent, b -> struct(b AS brokerId, floor * :shaved AS share))))) AS g)
SELECT brokerId AS key, to_json(struct(:version AS version, clusterId, brokerId, :run AS run, :sequence AS sequence,
    :computedAt AS computedAt,
    -- collect_list leaves out the null of the row without a client.
    transform(sort_array(collect_list(if(user IS NULL, NULL, struct(rank, user, clientId, quotaType, share, quota)))),
      s -> struct(s.user, s.clientId, s.quotaType, s.share, s.quota)) AS clients)) AS value
FROM given GROUP BY clusterId, brokerId
