package org.quotahost.table;

import static org.quotahost.table.FactorInForce.FETCH;
import static org.quotahost.table.FactorInForce.PRODUCE;

import java.util.AbstractMap;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Two metric tags as the map that Kafka gets, and what is kept by them: when they are in use, and the limit of FETCH that was
 * made last.
 *
 * <p>The map always has the two keys user and client-id in this order, as in Kafka's own callback. Kafka names its
 * sensors by the values alone, joined by ':'; the user is sanitized and has no ':', so no two pairs share a sensor.
 *
 * <p>A limit rises over empty windows (docs/adr/0020-marks-and-twin-tags.md) once a client changes between a scope's own
 * and its slowed tags, which Kafka measures apart: while a client is away from one, the windows of that one empty. The share
 * that it gets of its limit (Tap.rise) goes by how long it may have sent by these tags, in so far as Kafka still looks back
 * there: a client that was away for 3 s has 3 s less in its windows. A client that is silent keeps its limit, as Kafka has it,
 * too. The times are beats of the table's clock, by quota type, as Kafka's windows are: who fetches all the time fills none of
 * a producer's. Request threads note the use; whoever ends a mark notes that a client leaves.
 */
final class Tags extends AbstractMap<String, String> {
    static final String USER = "user", CLIENT_ID = "client-id";
    private static final String SLOWED = "<slowed", BUDGET = "<budget ";
    /** Before the first beat, by more than any age that is asked for. */
    static final int NEVER = Integer.MIN_VALUE / 2;
    private static final long[] UNUSED = new long[QuotaTable.TYPES];

    static {
        Arrays.fill(UNUSED, pack(NEVER, NEVER));
    }

    final String user;
    final String clientId;
    final Scope scope;
    /** Of those in the scope who write to affected topics the name of the topics' group; of the own tags null. */
    final String group;
    private final List<String> values;
    /** Request threads race for the place; each limit is complete, and right for its rule. */
    private Limit fetch;
    /**
     * From when on they would have been in use to have as much in Kafka's windows as they may have (the upper half), and when
     * they were last; together, since several request threads may come back at once.
     */
    private final AtomicLongArray times = new AtomicLongArray(UNUSED);
    /** Since when they have been in use with no pause as long as Kafka looks back, for StandIns. */
    private int produceSince, fetchSince;
    /** When a client that had the tags left last; of own tags, when one came back, from when on Kafka forgets what was sent. */
    private volatile int left = NEVER;

    /**
     * A limit, boxed once for each rule, so that a fetch allocates nothing: Kafka asks for the limit of FETCH with each
     * fetch. For those of other types it asks when they have changed, of all sensors at once: none is kept, which would be work
     * for the garbage collector.
     */
    private record Limit(Rule rule, Double value) {}

    Tags(Scope scope, String user, String clientId, String group) {
        this.scope = scope;
        this.user = user;
        this.clientId = clientId;
        this.group = group;
        values = List.of(user, clientId);
    }

    /**
     * The user tag of those in a scope who are slowed. Sanitizing replaces '<' and ' ', so no real user gets one, and a
     * scope's own name in brackets stays in brackets. The name of a budget has neither ' ' nor '>'.
     */
    static String slowedUser(String own, String group) {
        return (group.isEmpty() ? SLOWED : BUDGET + group) + (own.isEmpty() ? ">" : " " + own + ">");
    }

    Double limit(int type, Rule rule) {
        if (type != FETCH) return rule.limit(this, type);
        Limit limit = fetch;
        if (limit == null || limit.rule != rule) fetch = limit = new Limit(rule, rule.limit(this, FETCH));
        return limit.value;
    }

    // ---- since when, and when last ---------------------------------------------------------------------------

    private static long pack(int from, int seen) {
        return (long) from << 32 | seen & 0xFFFFFFFFL;
    }

    /**
     * On a request thread: a client has the tags in this beat. Answers whether nobody had them before, or since they were left.
     * A thread that stood still since it read the clock comes after others: it notes nothing.
     */
    boolean note(int type, int now, Rule rule) {
        long before = times.get(type);
        return now - (int) before > 0 && renew(type, before, now, rule);
    }

    private boolean renew(int type, long before, int now, Rule rule) {
        int from = (int) (before >>> 32), seen = (int) before;
        boolean begins = left - seen >= 0; // a mere pause, however long, takes no limit back
        if (begins || now - seen >= rule.backBeats()) {
            int since = begins ? now - held(before, now, rule) : now;
            if (type == PRODUCE) produceSince = since;
            else if (type == FETCH) fetchSince = since;
        }
        if (begins) from = now - fill(before, now, rule);
        times.compareAndSet(type, before, pack(from, now)); // if not, another thread has noted the same
        return begins;
    }

    /** A client leaves these tags, or comes back to own ones, from which it was away since their last use. */
    void leave(int now) {
        left = now;
    }

    /** Whether anybody has ever had the tags: then Kafka may have a sensor for them. */
    boolean wasHad() {
        return seen() != NEVER;
    }

    /** For whatever type. */
    int seen() {
        int last = NEVER;
        for (int type = 0; type < QuotaTable.TYPES; type++) last = Math.max(last, seen(type));
        return last;
    }

    int seen(int type) {
        return (int) times.get(type);
    }

    int inUse(int type, int now) {
        return now - (type == FETCH ? fetchSince : produceSince);
    }

    /** For how many beats' worth of its limit the tags may have something in Kafka's windows, at the time of a rule. */
    int fill(int type, Rule rule) {
        long at = times.get(type);
        int now = Math.max(0, rule.now() - (int) at) + (int) at; // a use may be noted later than the rule was made
        return fill(at, now, rule);
    }

    private int fill(long at, int now, Rule rule) {
        boolean inUse = left - (int) at < 0;
        if (group != null && !inUse) return held(at, now, rule);
        int risen = inUse ? now - (int) (at >>> 32) : Math.max(held(at, now, rule), now - left);
        return Math.min(rule.backBeats(), risen);
    }

    /** The same of what was sent until the last use; the windows may hold as much as the limit let through then. */
    private static int held(long at, int now, Rule rule) {
        int seen = (int) at, back = rule.backBeats(), most = Math.min(seen - (int) (at >>> 32), back), away = now - seen;
        return away >= back ? 0 : Math.max(Math.min(most, back - away), (int) (most * rule.windows().stepShare()));
    }

    // ---- the map ---------------------------------------------------------------------------------------------

    @Override
    public String get(Object key) {
        return USER.equals(key) ? user : CLIENT_ID.equals(key) ? clientId : null;
    }

    /** Kafka joins them on each request. */
    @Override
    public Collection<String> values() {
        return values;
    }

    /** In their order. Kafka copies them for each new sensor. */
    @Override
    public Set<Map.Entry<String, String>> entrySet() {
        return new LinkedHashSet<>(List.of(Map.entry(USER, user), Map.entry(CLIENT_ID, clientId)));
    }
}
