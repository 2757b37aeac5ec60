package org.quotahost.table;

import java.util.AbstractMap;
import java.util.AbstractSet;
import java.util.Arrays;
import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.kafka.server.quota.ClientQuotaType;

/**
 * The metric tags of one scope, ready to hand to Kafka, and the limits that go with them.
 *
 * <p>Always the two keys user and client-id in this order, as Kafka's own callback has them: Kafka names
 * sensors by the values alone, joined by ':'. The user is sanitized (no ':' in it), so no two scopes share a name.
 *
 * <p>Request threads read; one writer (the table, under its lock) writes.
 */
final class Tags extends AbstractMap<String, String> {
    static final String USER = "user";
    static final String CLIENT_ID = "client-id";
    static final int TYPES = ClientQuotaType.values().length;

    final String user;
    final String clientId;
    private final Set<Map.Entry<String, String>> entries;
    private final Collection<String> values;
    private final int hash;

    /** Boxed once for each change; null is unlimited. Replaced as a whole. */
    private volatile Double[] limits = new Double[TYPES];

    /** Base rates, NaN for unlimited; only the writer looks. */
    private final double[] base = new double[TYPES];
    /** What a factor acts on while the base is unlimited, NaN if nothing is known; only the writer looks. */
    private final double[] stand = new double[TYPES];
    /** Whether that was measured; else it is the newcomers' rate. */
    private final boolean[] standMeasured = new boolean[TYPES];
    private final int[] holders = new int[TYPES];
    private final boolean[] used = new boolean[TYPES];
    private final boolean[] exempt = new boolean[TYPES];
    private int orphanedAt = NEVER;
    private static final int NEVER = -1;

    Tags(String user, String clientId) {
        this.user = user;
        this.clientId = clientId;
        this.entries = new TwoEntries(Map.entry(USER, user), Map.entry(CLIENT_ID, clientId));
        this.values = List.of(user, clientId);
        this.hash = (USER.hashCode() ^ user.hashCode()) + (CLIENT_ID.hashCode() ^ clientId.hashCode());
        Arrays.fill(base, Double.NaN);
        Arrays.fill(stand, Double.NaN);
    }

    Double limit(int type) {
        return limits[type];
    }

    /** Sets the base rate of a type. Answers whether the limit is another one now. */
    boolean set(int type, double rate, boolean isExempt, LimitRule rule) {
        base[type] = rate;
        exempt[type] = isExempt;
        return refresh(type, rule);
    }

    /** Whether a client has ever had these tags for this type: then Kafka may hold the limit in a sensor. */
    boolean used(int type) {
        return used[type];
    }

    /** Works the limit of a type out again after the rule has changed. */
    boolean refresh(int type, LimitRule rule) {
        boolean left = used[type] && holders[type] == 0 && Double.isNaN(base[type]);
        return put(type, left ? null : rule.limit(type, base[type], stand[type], exempt[type]));
    }

    private boolean put(int type, Double limit) {
        Double[] now = limits;
        if (Objects.equals(now[type], limit)) return false;
        Double[] next = now.clone();
        next[type] = limit;
        limits = next;
        return true;
    }

    double base(int type) {
        return base[type];
    }

    double stand(int type) {
        return stand[type];
    }

    void stand(int type, double rate, boolean measured) {
        stand[type] = rate;
        standMeasured[type] = measured;
    }

    boolean standMeasured(int type) {
        return standMeasured[type];
    }

    boolean exempt(int type) {
        return exempt[type];
    }

    void hold(int type) {
        holders[type]++;
        used[type] = true;
        orphanedAt = NEVER;
    }

    /** A client went elsewhere; when it was the last one, the tags stay for a while without a limit of this type. */
    boolean leave(int type, int tick) {
        drop(type, tick);
        if (holders[type] > 0) return false;
        base[type] = Double.NaN;
        return put(type, null);
    }

    /** A client was forgotten; the limit stays, since Kafka's sensor may outlive it. */
    void drop(int type, int tick) {
        holders[type]--;
        if (Arrays.stream(holders).allMatch(n -> n == 0)) orphanedAt = tick;
    }

    boolean orphanedBefore(int tick) {
        return orphanedAt != NEVER && orphanedAt - tick < 0;
    }

    @Override
    public String get(Object key) {
        return USER.equals(key) ? user : CLIENT_ID.equals(key) ? clientId : null;
    }

    @Override
    public boolean containsKey(Object key) {
        return USER.equals(key) || CLIENT_ID.equals(key);
    }

    @Override
    public int size() {
        return 2;
    }

    @Override
    public Collection<String> values() {
        return values;
    }

    @Override
    public Set<Map.Entry<String, String>> entrySet() {
        return entries;
    }

    @Override
    public int hashCode() {
        return hash;
    }

    @Override
    public boolean equals(Object other) {
        return this == other || super.equals(other);
    }

    /** Two entries in their order; java.util.Set.of has none. */
    private static final class TwoEntries extends AbstractSet<Map.Entry<String, String>> {
        private final List<Map.Entry<String, String>> list;

        TwoEntries(Map.Entry<String, String> first, Map.Entry<String, String> second) {
            this.list = List.of(first, second);
        }

        @Override
        public Iterator<Map.Entry<String, String>> iterator() {
            return list.iterator();
        }

        @Override
        public int size() {
            return list.size();
        }
    }
}
