package org.quotahost.table;

import static org.quotahost.table.FactorInForce.FETCH;

import java.util.AbstractMap;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Two metric tags as the map that Kafka gets, and what is kept by them: when they are in use, and the limit of FETCH that was
 * made last.
 *
 * <p>The map always has the two keys user and client-id in this order, as in Kafka's own callback. Kafka names its
 * sensors by the values alone, joined by ':'; the user is sanitized and has no ':', so no two pairs share a sensor.
 *
 * <p>A limit rises over empty windows (docs/adr/0020-marks-and-twin-tags.md) once a client changes between a scope's own and its
 * slowed tags. The share that it gets of its limit (Tap.rise) goes by how long it may have sent by these tags, in so far as
 * Kafka still looks back there. A client that is silent keeps its limit, as Kafka has it, too. The times are beats of the table's clock, by quota type, as Kafka's windows are: who fetches all the time fills none of
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
    /** Since when (the upper half) and when last; together, since several request threads may come back at once. */
    private final AtomicLongArray times = new AtomicLongArray(UNUSED);
    /** When a client that had the tags left last; of own tags, when one came back, from when on Kafka forgets what was sent. */
    private volatile int left = NEVER;
    /** Of slowed tags, when their use began; a pause after that, however long, takes no limit back. */
    private final AtomicIntegerArray begun;

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
        begun = group == null ? null : new AtomicIntegerArray(QuotaTable.TYPES);
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

    private static long pack(int since, int seen) {
        return (long) since << 32 | seen & 0xFFFFFFFFL;
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
        int since = (int) (before >>> 32);
        int seen = (int) before;
        boolean begins = left - seen >= 0;
        if (begins || now - seen >= rule.backBeats()) since = now - byUse(before, now, rule);
        if (begins && group != null) begun.set(type, now);
        times.compareAndSet(type, before, pack(since, now)); // if not, another thread has noted the same
        return begins;
    }

    /**
     * A client leaves these tags, or comes back to own ones, from which it was away since their last use. Their windows may
     * hold as much as their limit let through then.
     */
    void leave(int now, Rule rule) {
        for (int each = 0; each < QuotaTable.TYPES; each++) {
            int type = each;
            times.updateAndGet(type, at -> pack((int) at - fill(type, at, (int) at, rule), (int) at));
        }
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

    /** For how many beats the tags have been in use, with no pause as long as Kafka looks back. */
    int inUse(int type, int now) {
        return now - (int) (times.get(type) >>> 32);
    }

    /** For how many beats' worth of its limit the tags may have something in Kafka's windows, at the time of a rule. */
    int fill(int type, Rule rule) {
        long at = times.get(type);
        int now = Math.max(0, rule.now() - (int) at) + (int) at; // a use may be noted later than the rule was made
        return fill(type, at, now, rule);
    }

    private int fill(int type, long at, int now, Rule rule) {
        int back = rule.backBeats();
        if (group != null && left - (int) at >= 0) return byUse(at, now, rule);
        int since = group == null ? left : begun.get(type);
        return now - since >= back ? back : Math.max(byUse(at, now, rule), now - since);
    }

    private int byUse(long at, int now, Rule rule) {
        int since = (int) (at >>> 32);
        int seen = (int) at;
        int back = rule.backBeats();
        int away = now - seen;
        if (away >= back) return 0;
        if (left - seen < 0) return now - since;
        int most = Math.min(seen - since, back);
        return Math.max(Math.min(most, back - away), (int) (most * rule.windows().stepShare()));
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
