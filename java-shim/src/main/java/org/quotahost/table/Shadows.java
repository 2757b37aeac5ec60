package org.quotahost.table;

import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.fence.Fence;
import org.quotahost.table.ShadowedUse.Key;
import org.quotahost.util.HeldBacks;

/**
 * Who would be held back by suppliers and the factor while these are in shadow, and by how much.
 *
 * <p>It compares what Kafka measures with the limits that would hold, each rule as if it alone were put in force; what
 * counts is the rate beyond the limit, as for Kafka itself. The thread of ShadowWatch calls look(). Kafka's MBeans are
 * read without the table's lock, and only those that a rule in shadow concerns.
 */
public final class Shadows {
    static final String SUPPLIER = "supplier.";
    /** Of partition mutations Kafka measures a bucket on one node alone, which says nothing of a limit that isn't there. */
    private static final ClientQuotaType[] TYPES =
            {ClientQuotaType.PRODUCE, ClientQuotaType.FETCH, ClientQuotaType.REQUEST};
    /** After a longer pause nobody knows for how many seconds of it a client was over a limit. */
    private static final double LONGEST = 10;

    private static final WouldBe.Scope NOBODY = new WouldBe.Scope("", "");

    private final Scopes scopes;
    private final Remembered remembered;
    private final LookUp lookUp;
    private final Slowing slowing;
    private final FactorInForce factorInForce;
    private final Object lock;
    private final HeldBacks heldBacks = new HeldBacks();
    private volatile List<String> rules = List.of();
    /** What was measured of the scopes that suppliers in shadow would make. */
    private volatile Map<Key, Double> rates = Map.of();
    /** By quota type, the rule that would hold back those who have these tags; of the last look. */
    private volatile Map<Tags, String[]> held = Map.of();
    /** The same of the look that goes on. */
    private Map<Tags, String[]> holding = new IdentityHashMap<>();
    private long lookedAt;

    /** @param lock the table's */
    Shadows(Scopes scopes, Remembered remembered, LookUp lookUp, Slowing slowing, FactorInForce factorInForce, Object lock) {
        this.scopes = scopes;
        this.remembered = remembered;
        this.lookUp = lookUp;
        this.slowing = slowing;
        this.factorInForce = factorInForce;
        this.lock = lock;
    }

    /** What holds while a look lasts. */
    private record State(LimitRule now, LimitRule without, boolean factor, boolean everything, boolean forSome, double seconds) {
        double beyond(ClientQuotaType type, double rate) {
            return type == ClientQuotaType.REQUEST ? 0 : rate * seconds; // a share of a thread has no bytes
        }
    }

    /** The counters of all rules that are or were in shadow. */
    public HeldBacks heldBacks() {
        return heldBacks;
    }

    /** The names of the rules that are not enforced, as the property shadow has them; with mode=shadow none is. */
    public List<String> rules() {
        return rules;
    }

    void rules(List<String> names) {
        names.forEach(heldBacks::of); // shown from the first look on, though nobody is held back
        rules = names;
    }

    /** The rule that would hold back those who have these tags, by the last look; "" for none. Any thread. */
    String holds(int type, Tags tags) {
        String[] byType = held.get(tags);
        return byType == null || type >= TYPES.length || byType[type] == null ? "" : byType[type];
    }

    /** The rate that was measured last of the scope that a supplier in shadow would make; NaN if it can't be told. */
    double rate(int type, WouldBe.Scope scope) {
        return rates.getOrDefault(new Key(type, scope), Double.NaN);
    }

    /**
     * What rules in shadow would do for a client; under the table's lock.
     *
     * @param tags what it has
     * @param would by quota type, what suppliers in shadow would give it; null for nothing
     * @param user its principal, sanitized
     * @param marked whether it writes to affected topics
     */
    Description.Shadow of(int type, Tags tags, WouldBe[] would, String user, String clientId, boolean marked) {
        WouldBe one = would == null ? null : would[type];
        WouldBe.Scope scope = one == null ? NOBODY : one.scope(user, clientId);
        double base = one == null ? Double.NaN : one.rate();
        Double limit = one == null ? null : scopes.rule().limit(type, base, Double.NaN, false);
        return new Description.Shadow(one == null ? "" : one.supplier(), scope, base, limit, rate(type, scope),
                factorLimit(type, tags, marked));
    }

    private String factorLimit(int type, Tags tags, boolean marked) {
        boolean shadow = factorInForce.inShadow() && factorInForce.value() < 1;
        boolean isFor = slowing.affected() == null || marked;
        if (!shadow || !isFor || tags.exempt(type) || !scopes.rule().factors(type)) return "";
        LimitRule rule = factorInForce.ruleWithoutShadow();
        return String.valueOf(rule.limit(type, tags.base(type), tags.standIn(type), false));
    }

    // ---- the thread of ShadowWatch ---------------------------------------------------------------------------

    /** Measures once, and counts. */
    public void look(long nanos) {
        double since = (nanos - lookedAt) / 1e9;
        lookedAt = nanos;
        heldBacks.begin(QuotaTable.FACTOR);
        heldBacks.begin(SUPPLIER);
        holding = new IdentityHashMap<>();
        if (scopes.rule().shadow() || rules.stream().anyMatch(rule -> rule.equals(QuotaTable.FACTOR) || rule.startsWith(SUPPLIER))) {
            count(since < 0 || since > LONGEST ? 0 : since);
        } else {
            rates = Map.of();
        }
        held = holding;
        heldBacks.end(QuotaTable.FACTOR);
        heldBacks.end(SUPPLIER);
    }

    private void count(double seconds) {
        State state;
        Map<Tags, ShadowedUse[]> uses;
        synchronized (lock) {
            LimitRule now = scopes.rule();
            boolean factor = factorInForce.value() < 1 && (factorInForce.inShadow() || now.shadow());
            state = new State(now, factorInForce.ruleWithoutShadow(), factor, now.shadow(), slowing.affected() != null, seconds);
            uses = uses();
        }
        Map<Key, ShadowedUse.Sum> sums = new HashMap<>();
        uses.values().forEach(byType -> {
            for (ShadowedUse use : byType) if (use != null && concerns(use, state)) count(use, state, sums);
        });
        Map<Key, Double> measured = new HashMap<>();
        sums.forEach((key, sum) -> measured.put(key, count(key, sum, state)));
        rates = measured;
    }

    private static boolean concerns(ShadowedUse use, State state) {
        boolean byFactor = state.factor && state.now.factors(use.type.ordinal()) && (!state.forSome || use.marked);
        return use.would() || byFactor || state.everything && !Double.isNaN(use.base);
    }

    private void count(ShadowedUse use, State state, Map<Key, ShadowedUse.Sum> sums) {
        double measured = KafkaRates.read(use.type, use.tags).rate();
        double rate = Double.isNaN(measured) ? 0 : measured;
        use.addTo(sums, rate);
        if (state.everything && rate > use.base && !use.supplier.isEmpty()) {
            hold(SUPPLIER + use.supplier, List.of(use), rate - use.base, state);
        }
        if (!state.factor || !state.now.factors(use.type.ordinal()) || state.forSome && !use.marked) return;
        // The factor holds back what the quota lets through.
        double passed = Double.isNaN(use.base) ? rate : Math.min(rate, use.base);
        Double limit = factorLimit(use, state);
        if (limit != null && passed > limit) hold(QuotaTable.FACTOR, List.of(use), passed - limit, state);
    }

    private static Double factorLimit(ShadowedUse use, State state) {
        boolean turnedBack = use.type == ClientQuotaType.PRODUCE && Fence.closed() && !state.forSome;
        if (turnedBack) return use.passesFence ? null : 0.0;
        return state.without.limit(use.type.ordinal(), use.base, use.standIn, false);
    }

    private double count(Key key, ShadowedUse.Sum sum, State state) {
        Double limit = state.now.limit(key.type(), sum.would.rate(), Double.NaN, false);
        if (!sum.measured) {
            if (limit != null) heldBacks.of(SUPPLIER + sum.would.supplier()).addUnmeasured();
            return Double.NaN;
        }
        if (limit != null && sum.rate > limit) {
            hold(SUPPLIER + sum.would.supplier(), sum.uses, sum.rate - limit, state);
        }
        return sum.rate;
    }

    /** The rule would hold back the one scope that has all of these. */
    private void hold(String rule, List<ShadowedUse> uses, double beyond, State state) {
        ClientQuotaType type = uses.get(0).type;
        heldBacks.of(rule).add(state.seconds, state.beyond(type, beyond));
        for (ShadowedUse each : uses) {
            holding.computeIfAbsent(each.tags, any -> new String[TYPES.length])[type.ordinal()] = rule;
        }
    }

    // ---- under the table's lock --------------------------------------------------------------------------------

    /** The tags of clients that were seen lately, with the clients that have them, by quota type. */
    private Map<Tags, ShadowedUse[]> uses() {
        Map<Tags, ShadowedUse[]> uses = new IdentityHashMap<>();
        remembered.forEach(principal -> {
            Whole whole = principal.whole();
            boolean passes = Fence.passes(principal.name, principal.sample);
            for (ClientQuotaType type : TYPES) {
                int at = type.ordinal();
                Tags shared = whole.tags()[at];
                if (shared != null && isRecent(principal, at)) {
                    boolean marked = slowing.topic(principal.name, principal.sample) != null;
                    use(uses, shared, type, whole.suppliers()[at], marked, passes).add(principal.would, principal.user);
                }
            }
            for (Client client : principal.clients.values()) add(uses, client, passes);
        });
        return uses;
    }

    private void add(Map<Tags, ShadowedUse[]> uses, Client client, boolean passes) {
        for (ClientQuotaType type : TYPES) {
            int at = type.ordinal();
            Tags tags = client.tags(at);
            if (tags == null || !isRecent(client, at)) continue;
            boolean marked = slowing.topic(client.principal, client.clientId) != null;
            use(uses, tags, type, client.suppliers[at], marked, passes).add(client.would, client.user, client.clientId);
        }
    }

    private ShadowedUse use(Map<Tags, ShadowedUse[]> uses, Tags tags, ClientQuotaType type, String supplier, boolean marked,
            boolean passes) {
        ShadowedUse[] byType = uses.computeIfAbsent(tags, any -> new ShadowedUse[TYPES.length]);
        ShadowedUse use = byType[type.ordinal()];
        if (use == null) use = byType[type.ordinal()] = new ShadowedUse(type, tags, supplier);
        use.marked &= marked;
        use.passesFence &= passes;
        return use;
    }

    private boolean isRecent(Known known, int type) {
        return (lookUp.now() - known.seen(type)) * QuotaTable.BEAT_MS <= Usage.RECENT_MS;
    }
}
