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
 * The metric tags of one scope, as the map that Kafka gets, and the limits of the scope.
 *
 * <p>The map always has the two keys user and client-id in this order, as in Kafka's own callback. Kafka names its
 * sensors by the values alone, joined by ':'; the user is sanitized and has no ':', so no two scopes share a sensor.
 *
 * <p>Request threads read it; the table alone writes it, under its lock.
 */
final class Tags extends AbstractMap<String, String> {
    static final String USER = "user";
    static final String CLIENT_ID = "client-id";
    private static final int NEVER = -1;
    /**
     * How many quota types the table knows; arrays "by quota type" go by ClientQuotaType.ordinal(). A later Kafka may
     * add types behind these, which the callback leaves unlimited.
     */
    static final int TYPES = ClientQuotaType.CONTROLLER_MUTATION.ordinal() + 1;

    final String user;
    final String clientId;
    private final Set<Map.Entry<String, String>> entries;
    private final Collection<String> values;
    private final int hash;

    /** Null for unlimited. Boxed here once, so that request threads need not; fields, as in Known. */
    private volatile Double produce;
    private volatile Double fetch;
    private volatile Double request;
    private volatile Double mutation;

    /** Base rates by quota type, NaN for unlimited. This and all below is for the writer only. */
    private final double[] base = new double[TYPES];
    /** The rate that a factor multiplies while the base rate is NaN; NaN if nothing is known. */
    private final double[] standIn = new double[TYPES];
    /** Whether the stand-in was measured; otherwise it is the newcomers' rate. */
    private final boolean[] standInMeasured = new boolean[TYPES];
    /** How many clients have these tags, by quota type. */
    private final int[] holders = new int[TYPES];
    private final boolean[] used = new boolean[TYPES];
    private final boolean[] exempt = new boolean[TYPES];
    /** The beat at which the last client left. */
    private int orphanedAt = NEVER;

    Tags(String user, String clientId) {
        this.user = user;
        this.clientId = clientId;
        this.entries = new TwoEntries(Map.entry(USER, user), Map.entry(CLIENT_ID, clientId));
        this.values = List.of(user, clientId);
        this.hash = (USER.hashCode() ^ user.hashCode()) + (CLIENT_ID.hashCode() ^ clientId.hashCode());
        Arrays.fill(base, Double.NaN);
        Arrays.fill(standIn, Double.NaN);
    }

    Double limit(int type) {
        return switch (type) {
            case 0 -> produce;
            case 1 -> fetch;
            case 2 -> request;
            default -> mutation;
        };
    }

    /** Sets the base rate of a type. Answers whether the limit has changed. */
    boolean set(int type, double rate, boolean isExempt, LimitRule rule) {
        base[type] = rate;
        exempt[type] = isExempt;
        return refresh(type, rule);
    }

    /** Whether a client has ever had these tags for this type: then Kafka may have the limit in a sensor. */
    boolean used(int type) {
        return used[type];
    }

    /** Computes the limit of a type anew after the rule has changed. Answers whether it has changed. */
    boolean refresh(int type, LimitRule rule) {
        // No client has these tags any more, and no rate is set: Kafka's sensor stays unlimited, whatever the rule.
        boolean left = used[type] && holders[type] == 0 && Double.isNaN(base[type]);
        return put(type, left ? null : rule.limit(type, base[type], standIn[type], exempt[type]));
    }

    private boolean put(int type, Double limit) {
        if (Objects.equals(limit(type), limit)) return false;
        switch (type) {
            case 0 -> produce = limit;
            case 1 -> fetch = limit;
            case 2 -> request = limit;
            default -> mutation = limit;
        }
        return true;
    }

    double base(int type) {
        return base[type];
    }

    double standIn(int type) {
        return standIn[type];
    }

    void standIn(int type, double rate, boolean measured) {
        standIn[type] = rate;
        standInMeasured[type] = measured;
    }

    boolean standInMeasured(int type) {
        return standInMeasured[type];
    }

    boolean exempt(int type) {
        return exempt[type];
    }

    /** A client gets these tags. */
    void join(int type) {
        holders[type]++;
        used[type] = true;
        orphanedAt = NEVER;
    }

    /**
     * A client gets other tags. After the last one these stay for a while, unlimited. Answers whether the limit has
     * changed.
     */
    boolean leave(int type, int beat) {
        drop(type, beat);
        if (holders[type] > 0) return false;
        base[type] = Double.NaN;
        return put(type, null);
    }

    /** The table forgets a client. The limit stays, since Kafka's sensor may outlive the client. */
    void drop(int type, int beat) {
        holders[type]--;
        for (int each : holders) if (each > 0) return;
        orphanedAt = beat;
    }

    /** Whether no client has had these tags since before a beat. */
    boolean orphanedBefore(int beat) {
        return orphanedAt != NEVER && orphanedAt - beat < 0;
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

    /** Two entries in their order; java.util.Set.of has no order. */
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
