package org.quotahost.table;

import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.apache.kafka.server.quota.ClientQuotaType;

/**
 * The metric tags of one scope and the limits of the scope, with those of its twin (Twin).
 *
 * <p>Request threads read it; the table alone writes it, under its lock, but for what a request notes of its own: that
 * there is a twin now, and when the tags were last had.
 */
final class Tags extends TagPair {
    static final int PRODUCE = ClientQuotaType.PRODUCE.ordinal();
    private static final int NEVER = -1;
    /**
     * How many quota types the table knows; arrays "by quota type" go by ClientQuotaType.ordinal(). A later Kafka may
     * add types behind these, which the callback leaves unlimited.
     */
    static final int TYPES = ClientQuotaType.CONTROLLER_MUTATION.ordinal() + 1;

    /** Null for unlimited. Boxed here once, so that request threads need not; fields, as in Known. */
    private volatile Double produce;
    private volatile Double fetch;
    private volatile Double request;
    private volatile Double mutation;
    /** The twin's limits by quota type; null while a factor is for all clients, and then a twin has these tags' own. */
    private volatile AtomicReferenceArray<Double> slowed;
    /** What those have who are slowed in this scope, or null as long as nobody is. */
    private volatile Twin twin;
    /** Whether there has ever been a twin: then Kafka may have the twin's limits in sensors. */
    private volatile boolean wasSplit;
    /** The beat at which a client that is not slowed had these tags for PRODUCE last; kept only while some are slowed. */
    private int seen;

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
    /** Which share of the PRODUCE limit is given while these tags rise after their clients were slowed, 0..1. */
    private double share = 1;
    /** The same for the twin's limits of all types; a twin begins with the share that it has before there is one. */
    private double twinShare = 1;
    /** The beat at which the last client left. */
    private int orphanedAt = NEVER;

    Tags(String user, String clientId) {
        super(user, clientId);
        Arrays.fill(base, Double.NaN);
        Arrays.fill(standIn, Double.NaN);
    }

    @Override
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

    /**
     * Computes the limits of a type anew after the rule has changed, the twin's, too. Answers whether one has changed
     * that Kafka may have.
     */
    boolean refresh(int type, LimitRule rule) {
        // No client has these tags any more, and no rate is set: Kafka's sensor stays unlimited, whatever the rule.
        boolean left = used[type] && holders[type] == 0 && Double.isNaN(base[type]);
        // Of an unlimited scope there is no share.
        double own = type == PRODUCE && !Double.isNaN(base[type]) ? share : 1;
        Double before = slowedLimit(type);
        boolean changed = put(type, left ? null : rule.limit(type, base[type], standIn[type], exempt[type], own));
        LimitRule slow = rule.slowed();
        if (slow == null) slowed = null;
        else slow(type, left ? null : slow.limit(type, base[type], standIn[type], exempt[type], twinShare));
        return changed | (!Objects.equals(before, slowedLimit(type)) && wasSplit); // read last: split() is the other way round
    }

    private void slow(int type, Double limit) {
        AtomicReferenceArray<Double> all = slowed;
        if (all == null) {
            all = new AtomicReferenceArray<>(TYPES);
            for (int each = 0; each < TYPES; each++) all.set(each, limit(each));
            all.set(type, limit);
            slowed = all;
        } else if (!Objects.equals(all.get(type), limit)) {
            all.set(type, limit);
        }
    }

    /** The limit of the twin, whether or not there is one. */
    Double slowedLimit(int type) {
        AtomicReferenceArray<Double> all = slowed;
        return all == null ? limit(type) : all.get(type);
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
        boolean twins = wasSplit && slowedLimit(type) != null;
        if (slowed != null) slow(type, null);
        return put(type, null) | twins;
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

    // ---- the twin --------------------------------------------------------------------------------------------

    /** Null as long as nobody is slowed in this scope. */
    Twin twin() {
        return twin;
    }

    /** Makes the twin, on a request thread. */
    Twin split() {
        Twin made = new Twin(this);
        wasSplit = true;
        twin = made;
        return made;
    }

    /** Nobody has had the twin for as long as Kafka looks back. */
    void unite() {
        twin = null;
    }

    /** Notes the beat at which a client that is not slowed has these tags for PRODUCE. */
    void see(int beat) {
        if (seen != beat) seen = beat;
    }

    int seen() {
        return seen;
    }

    /** Sets which share of the PRODUCE limit these tags' clients get, until the next refresh() without effect. */
    void share(double part) {
        share = part;
    }

    double share() {
        return share;
    }

    /** Sets which share of its limits the twin gets. */
    void twinShare(double part) {
        twinShare = part;
    }

    double twinShare() {
        return twinShare;
    }
}
