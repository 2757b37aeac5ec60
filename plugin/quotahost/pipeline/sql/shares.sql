-- This query makes one record of shares for each broker that is not removed, from the latest usage of each broker. It
-- divides each client's quota by the brokers' demands, as harness/max_min.py does, and reads its input once.
-- The query divides the number 1: a broker's demand for a client is a fraction of the quota that the same broker states.
-- So no record, whatever it contains, changes the meaning of another broker's demand.
-- Each broker adds a row without a client. The group of these rows lists all brokers, and the window passes the list to
-- every client. These rows also give a broker a record if there is no client at all.
WITH brokers AS (
  SELECT clusterId, brokerId, clients, ts >= timestamp_millis(:now - :validity) AS fresh
  FROM {usage} WHERE NOT removed AND ts >= timestamp_millis(:now - :expiry)
    AND array_contains(from_json(:listed, 'ARRAY<STRING>'), brokerId)),
reported AS (
  SELECT clusterId, brokerId, fresh, pos, c
  FROM brokers LATERAL VIEW posexplode(array_append(if(fresh, clients, array()), NULL)) AS pos, c),
grouped AS (
  -- The uses are sorted by broker as in the plain model, because a sum of floats depends on the order.
  SELECT clusterId, c.user, c.clientId, c.quotaType, min(pos) AS place,
    sort_array(collect_list(struct(brokerId, fresh, c.quota AS quota, c.demand / c.quota AS demand))) AS uses
  FROM reported GROUP BY clusterId, c.user, c.clientId, c.quotaType),
rated AS (
  SELECT *, coalesce(octet_length(user) + octet_length(clientId), 0) AS names,
    if(user IS NULL, transform(filter(uses, u -> u.fresh), u -> u.brokerId), NULL) AS freshHere,
    if(user IS NULL, transform(filter(uses, u -> NOT u.fresh), u -> u.brokerId), NULL) AS silentHere
  FROM grouped
  -- A few long names would leave no room for other clients.
  WHERE user IS NULL OR octet_length(user) + octet_length(clientId) <= :name),
ranked AS (
  SELECT clusterId, user, clientId, quotaType, uses, max(freshHere) OVER whole AS fresh,
    max(silentHere) OVER whole AS silent, row_number() OVER busiest AS rank,
    sum(names) OVER busiest AS names
  FROM rated
  WINDOW whole AS (PARTITION BY clusterId),
    -- The row without a client comes first: its rank is 1, hence `:clients + 1` below. Each broker's first client follows,
    -- then each broker's second one, so a broker with many clients can't displace the clients of other brokers.
    busiest AS (PARTITION BY clusterId ORDER BY user IS NOT NULL, place, user, clientId, quotaType
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)),
floored AS (
  SELECT *, size(fresh) + size(silent) AS brokers, 1D * :floor / (size(fresh) + size(silent)) AS floor,
    1D - 1D * :floor / (size(fresh) + size(silent)) * (size(fresh) + size(silent)) AS rest
  -- The bounds apply to the cluster: the records of all brokers list the same clients, so that no sum exceeds the quota.
  FROM ranked WHERE rank <= :clients + 1 AND names <= :names),
wanting AS (
  -- `wanted` is the demand above the floor; a broker that states no demand would use any share.
  SELECT *, transform(uses, u -> if(u.demand IS NULL, rest, least(greatest(u.demand - floor, 0D), rest))) AS wanted
  FROM floored),
levelled AS (
  -- `level` is the highest one at which the 0, 1, 2 ... smallest demands are met; a broker that wants more gets the level.
  SELECT *, aggregate(sort_array(wanted), named_struct('level', 0D, 'met', 0D, 'number', 0),
    (a, more) -> named_struct('level', greatest(a.level, (rest - a.met) / (size(wanted) - a.number)),
      'met', a.met + more, 'number', a.number + 1), a -> a.level) AS level
  FROM wanting),
spread AS (
  -- The rest that no broker demands is spread over the brokers that report, so that a client can start on any of them.
  SELECT *, greatest(0D, rest - aggregate(wanted, 0D, (sum, more) -> sum + least(more, level)))
    / nullif(size(fresh), 0) AS over
  FROM levelled),
given AS (
  SELECT clusterId, rank, user, clientId, quotaType, g.brokerId, g.share, g.quota
  FROM spread LATERAL VIEW explode(if(user IS NULL,
    transform(concat(fresh, silent), b -> struct(b AS brokerId, 0D AS share, 1D AS quota)),
    concat(
      -- First brokers that reported the client, then other brokers that report, then silent brokers, which keep the floor.
      transform(arrays_zip(uses, wanted), z -> struct(z.uses.brokerId AS brokerId,
        (floor + least(z.wanted, level) + over) * :shaved * z.uses.quota AS share, z.uses.quota AS quota)),
      -- Brokers that don't report the client get steps, rounded down: otherwise any use on another broker changes the share.
      transform(array_except(fresh, transform(uses, u -> u.brokerId)), b -> struct(b AS brokerId,
        (floor + floor(over * brokers * :steps) / (brokers * :steps)) * :shaved AS share, 1D AS quota)),
      transform(silent, b -> struct(b AS brokerId, floor * :shaved AS share, 1D AS quota))))) AS g),
listed AS (
  SELECT clusterId, brokerId,
    -- collect_list drops the null of the row without a client.
    transform(sort_array(collect_list(if(user IS NULL, NULL, struct(rank, user, clientId, quotaType, share, quota)))),
      s -> struct(s.user, s.clientId, s.quotaType, s.share, s.quota)) AS clients
  FROM given GROUP BY clusterId, brokerId)
SELECT brokerId AS key, coalesce(int(pmod(try_cast(brokerId AS BIGINT), :partitions)), 0) AS partition,
  xxhash64(clusterId, clients) AS hash,
  to_json(struct(:version AS version, clusterId, brokerId, :run AS run, :sequence AS sequence,
    :computedAt AS computedAt, clients)) AS value
FROM listed
