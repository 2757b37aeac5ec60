-- The newest usage of each broker -> one record of shares for each broker that is not removed, by what brokers claim of each
-- client, without those that Kafka has already. It divides each client's quota as tests/reference/max_min.py does, and reads
-- its input once.
-- It divides the number 1: what a broker claims of a client is a part of the quota that the same broker states. So no
-- record, whatever is in it, changes what another broker's claim means.
-- Each broker adds a row without a client. The group of these rows lists all brokers, which the window hands to every
-- client; and by it a broker gets a record even where there is no client at all.
WITH brokers AS (
  SELECT clusterId, brokerId, clients, ts >= timestamp_millis(:now - :validity) AS fresh
  FROM {usage} WHERE NOT removed AND ts >= timestamp_millis(:now - :expiry)
    AND array_contains(from_json(:known, 'ARRAY<STRING>'), brokerId)),
reported AS (
  SELECT clusterId, brokerId, fresh, pos, c
  FROM brokers LATERAL VIEW posexplode(array_append(if(fresh, clients, array()), NULL)) AS pos, c),
grouped AS (
  -- Sorted by broker as in the plain model: a sum of floats depends on the order.
  SELECT clusterId, c.user, c.clientId, c.quotaType, min(pos) AS place,
    sort_array(collect_list(struct(brokerId, fresh, c.quota AS quota, c.demand / c.quota AS demand))) AS uses
  FROM reported GROUP BY clusterId, c.user, c.clientId, c.quotaType),
rated AS (
  SELECT *, coalesce(octet_length(user) + octet_length(clientId), 0) AS names,
    if(user IS NULL, transform(filter(uses, u -> u.fresh), u -> u.brokerId), NULL) AS freshHere,
    if(user IS NULL, transform(filter(uses, u -> NOT u.fresh), u -> u.brokerId), NULL) AS silentHere
  FROM grouped
  -- A few long names would leave no place for the others.
  WHERE user IS NULL OR octet_length(user) + octet_length(clientId) <= :name),
ranked AS (
  SELECT clusterId, user, clientId, quotaType, uses, max(freshHere) OVER whole AS fresh,
    max(silentHere) OVER whole AS silent, row_number() OVER busiest AS rank,
    sum(names) OVER busiest AS names
  FROM rated
  WINDOW whole AS (PARTITION BY clusterId),
    -- The row without a client comes first: its rank is 1, hence `:clients + 1` below. Then the first client of every
    -- broker, then every second one: a broker that lists many can't displace those of the others.
    busiest AS (PARTITION BY clusterId ORDER BY user IS NOT NULL, place, user, clientId, quotaType
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)),
floored AS (
  SELECT *, size(fresh) + size(silent) AS brokers, 1D * :floor / (size(fresh) + size(silent)) AS floor,
    1D - 1D * :floor / (size(fresh) + size(silent)) * (size(fresh) + size(silent)) AS rest
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
  SELECT clusterId, rank, user, clientId, quotaType, g.brokerId, g.share, g.quota
  FROM spread LATERAL VIEW explode(if(user IS NULL,
    transform(concat(fresh, silent), b -> struct(b AS brokerId, 0D AS share, 1D AS quota)),
    concat(
      -- Brokers that reported the client, other brokers that report, and silent ones, which keep the floor.
      transform(arrays_zip(uses, wanted), z -> struct(z.uses.brokerId AS brokerId,
        (floor + least(z.wanted, level) + over) * :shaved * z.uses.quota AS share, z.uses.quota AS quota)),
      -- In steps, downwards: where nobody uses the client, its share would change with each use elsewhere.
      transform(array_except(fresh, transform(uses, u -> u.brokerId)), b -> struct(b AS brokerId,
        (floor + floor(over * brokers * :steps) / (brokers * :steps)) * :shaved AS share, 1D AS quota)),
      transform(silent, b -> struct(b AS brokerId, floor * :shaved AS share, 1D AS quota))))) AS g),
listed AS (
  SELECT clusterId, brokerId,
    -- collect_list leaves out the null of the row without a client.
    transform(sort_array(collect_list(if(user IS NULL, NULL, struct(rank, user, clientId, quotaType, share, quota)))),
      s -> struct(s.user, s.clientId, s.quotaType, s.share, s.quota)) AS clients
  FROM given GROUP BY clusterId, brokerId)
SELECT brokerId AS key, coalesce(int(pmod(try_cast(brokerId AS BIGINT), :partitions)), 0) AS partition,
  xxhash64(clusterId, clients) AS hash,
  to_json(struct(:version AS version, clusterId, brokerId, :run AS run, :sequence AS sequence,
    :computedAt AS computedAt, clients)) AS value
FROM listed
