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
import org.quotahost.table.Rule.TypeRule;

/**
 * Two metric tags as the map that Kafka gets, the times of their use, and the last limit of FETCH.
 *
 * <p>The map always has the two keys user and client-id in this order, as in Kafka's own callback. Kafka names its sensors by
 * the values alone, joined by ':'. The user is sanitized and has no ':', so no two pairs share a sensor.
 *
 * <p>When a client changes between a scope's own and its slowed tags, its limit rises over empty windows
 * (docs/adr/0020-marks-and-twin-tags.md): Kafka measures the two apart, and the windows of the unused tags empty. The share of
 * the limit (Tap.Windows.rise) depends on how long the client may have sent with these tags, as far as Kafka looks back: if it
 * was away for 3 s, the windows contain 3 s less. A silent client keeps its limit, as in Kafka. The times are beats of the
 * table's clock by quota type, like Kafka's windows: a client that fetches all the time fills none of PRODUCE. Request threads
 * note the use, and the thread that ends a mark notes that a client leaves.
 */
final class Tags extends AbstractMap<String, String> {
    static final String USER = "user", CLIENT_ID = "client-id";
    private static final String SLOWED = "<slowed", BUDGET = "<budget ";
    /** Before the first beat, by more than any age that is computed. */
    static final int NEVER = Integer.MIN_VALUE / 2;
    private static final long[] UNUSED = new long[QuotaTable.TYPES];

    static {
        Arrays.fill(UNUSED, pack(NEVER, NEVER));
    }

    final String user;
    final String clientId;
    final Scope scope;
    /** The name of the topics' group, for the scope's clients that write to affected topics; null for the own tags. */
    final String group;
    private final List<String> values;
    /** The tags that followed in Kafka's last walk over its sensors, by quota type; null when the table has forgotten these. */
    Tags[] next = new Tags[QuotaTable.TYPES];
    /** Request threads race to write it; each limit is complete, and right for its rule. */
    private Limit fetch;
    /**
     * Two beats in one long, since several request threads may come back at once. Upper half: since when the tags would have
     * been in use to have as much in Kafka's windows as they may have. Lower half: their last use.
     */
    private final AtomicLongArray times = new AtomicLongArray(UNUSED);
    /** The beats since which the tags have been in use without a pause as long as Kafka looks back, for StandIns. */
    private int produceSince, fetchSince;
    /** When a client last left these slowed tags, or came back to these own tags: Kafka then begins to forget its slowed rate. */
    volatile int left = NEVER;

    /**
     * A limit, boxed once for each rule, so that a fetch allocates nothing: Kafka asks for the limit of FETCH with each fetch.
     * It asks for the other types only when their limits have changed, for all sensors at once. Those limits are not kept,
     * which would be work for the garbage collector.
     *
     * @param of the part by which a rule is known again; the whole of an old rule has its topics, and a client may stay silent
     */
    private record Limit(TypeRule[] of, Double value) {}

    Tags(Scope scope, String user, String clientId, String group) {
        this.scope = scope;
        this.user = user;
        this.clientId = clientId;
        this.group = group;
        values = List.of(user, clientId);
    }

    /**
     * Returns the user tag of the slowed clients in a scope. Sanitizing replaces '<' and ' ', so no real user gets such a tag,
     * and a scope's own name in brackets stays in brackets. The name of a budget has neither ' ' nor '>'.
     */
    static String slowedUser(String own, String group) {
        return (group.isEmpty() ? SLOWED : BUDGET + group) + (own.isEmpty() ? ">" : " " + own + ">");
    }

    Double limit(int type, Rule rule) {
        if (type != FETCH) return rule.limit(this, type);
        Limit limit = fetch;
        if (limit == null || limit.of != rule.all()) fetch = limit = new Limit(rule.all(), rule.limit(this, FETCH));
        return limit.value;
    }

    // ---- times of use ----------------------------------------------------------------------------------------

    private static long pack(int from, int seen) {
        return (long) from << 32 | seen & 0xFFFFFFFFL;
    }

    /**
     * Notes on a request thread that a client has the tags in this beat. Returns whether no client had them before, or since
     * they were left. A thread that was suspended after it read the clock comes after others, and notes nothing.
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
        times.compareAndSet(type, before, pack(from, now)); // if this fails, another thread has noted the same
        return begins;
    }

    /** Returns whether any client has ever had the tags: then Kafka may have a sensor for them. */
    boolean wasHad() {
        return seen() != NEVER;
    }

    /** Returns the beat of the last use for any type. */
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

    /** Returns how many beats' worth of their limit Kafka's windows may contain for these tags, at the time of a rule. */
    int fill(int type, Rule rule) {
        long at = times.get(type);
        int now = Math.max(0, rule.now() - (int) at) + (int) at; // a use may be noted after the rule was made
        return fill(at, now, rule);
    }

    private int fill(long at, int now, Rule rule) {
        boolean inUse = left - (int) at < 0;
        if (group != null && !inUse) return held(at, now, rule);
        int risen = inUse ? now - (int) (at >>> 32) : Math.max(held(at, now, rule), now - left);
        return Math.min(rule.backBeats(), risen);
    }

    /** Returns the same for what was sent until the last use; the windows may contain as much as the limit allowed then. */
    private static int held(long at, int now, Rule rule) {
        int seen = (int) at, back = rule.backBeats(), most = Math.min(seen - (int) (at >>> 32), back), away = now - seen;
        return away >= back ? 0 : Math.max(Math.min(most, back - away), (int) (most * rule.windows().stepShare()));
    }

    // ---- the map ---------------------------------------------------------------------------------------------

    @Override
    public String get(Object key) {
        return USER.equals(key) ? user : CLIENT_ID.equals(key) ? clientId : null;
    }

    /** Kafka joins the values on each request. */
    @Override
    public Collection<String> values() {
        return values;
    }

    /** In the order of the keys. Kafka copies them for each new sensor. */
    @Override
    public Set<Map.Entry<String, String>> entrySet() {
        return new LinkedHashSet<>(List.of(Map.entry(USER, user), Map.entry(CLIENT_ID, clientId)));
    }
}
