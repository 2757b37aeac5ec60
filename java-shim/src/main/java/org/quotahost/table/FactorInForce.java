package org.quotahost.table;

import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.fence.Fence;
import org.quotahost.table.Marks.Affected;
import org.quotahost.table.QuotaTable.SlowedTopics;
import org.quotahost.table.Rule.TypeRule;
import org.quotahost.table.Tap.Windows;

/**
 * The factor in force: the host's or the fallback's, also by quota type, with shadow and floors; it decides whether the fence
 * turns requests back in place of lower limits, and when Kafka rereads limits. Without a fence, a factor for topics is for all.
 *
 * <p>At each beat, and after each change of a setting, a Tap moves the limits on, and a new Rule comes into force. If it makes
 * other limits of a type than the last rule, that type's generation grows. The table's lock guards all except the getters.
 *
 * <p>If a fence is installed, it enforces a PAUSE: it turns produce requests back, and the produce limits go no lower than
 * where they begin after the release.
 */
public final class FactorInForce {
    static final int PRODUCE = ClientQuotaType.PRODUCE.ordinal(), FETCH = ClientQuotaType.FETCH.ordinal();
    /** The floors of the types that do not count bytes: one percent of a thread, and one mutation in ten seconds. */
    static final double FLOOR_REQUEST = 1.0, FLOOR_MUTATION = 0.1;

    private static final Factor OPEN = new Factor(1, "");

    private final AtomicIntegerArray generations = new AtomicIntegerArray(QuotaTable.TYPES);
    /** The beat at which Kafka has to read the limits once more (settle), by quota type. */
    private final int[] settleAt = new int[QuotaTable.TYPES];
    /** The host's latest factor, also while the fallback is in force. */
    volatile Factor hostFactor = OPEN;
    /** The topics of the volumes' group, unless the factor is for all clients, and those of budgets; null if there are none. */
    Affected hostAffected;
    /** The host's further factors by quota type, all above 0: for all clients, and never a PAUSE. The smallest factor wins. */
    volatile Factor[] ofTypes = {OPEN, OPEN, OPEN, OPEN};
    /** The fallback's factor while the host is silent; null while the host's factor is in force. */
    volatile Double fallback;
    /** The rules that are not enforced, by their names in the property shadow. */
    volatile List<String> shadow = List.of();
    volatile Set<ClientQuotaType> factored = EnumSet.of(ClientQuotaType.PRODUCE);
    volatile double floorBytes = 35_000;
    Windows windows = new Windows(11, 1_000, 30_000);
    /** The taps for all clients, or for those that do not write to affected topics. */
    private final Taps allTaps = new Taps(0);
    /**
     * The taps for clients that write to affected topics, by group. Those of the volumes' group always move on, so that they
     * are ready for a turn from a factor for all to one for topics. Those of a budget stay until they are back at 1.
     */
    private final Map<String, Taps> slowedTaps = new HashMap<>(Map.of(SlowedTopics.VOLUMES, new Taps(0)));
    /** A bit for each quota type whose limits Kafka must reread; under the table's lock. */
    private int toRenew;
    private volatile Rule rule = next(0, Tags.NEVER);

    /** A factor (0..1) and its cause in words for an operator; both are read together. */
    public record Factor(double value, String cause) {}

    // ---- getters, any thread ---------------------------------------------------------------------------------

    public double value() {
        Double instead = fallback;
        return instead != null ? instead : hostFactor.value;
    }

    public Factor hostFactor() {
        return hostFactor;
    }

    /** Returns the factor of one quota type alone, beside the general one; 1 while the fallback is in force. */
    public Factor ofType(int type) {
        return fallback == null ? ofTypes[type] : OPEN;
    }

    /**
     * Returns the number by which produce limits are multiplied now, for the clients that the factor is for. The tap moves it
     * to the factor in force, or, while the fence holds a PAUSE, to where it begins after the release.
     */
    public double limitFactor() {
        Rule now = rule;
        return now.slowed().getOrDefault(SlowedTopics.VOLUMES, now.all())[PRODUCE].factor();
    }

    /** Returns the rules in shadow; a list with "all" also has "factor" and "topics". */
    public List<String> shadow() {
        return shadow;
    }

    /**
     * Returns whether the factor is only computed and shown: limits stay as with a factor of 1. When the factor is enforced
     * again, the tap lowers them.
     */
    boolean inShadow() {
        return shadow.contains("factor");
    }

    public boolean isEnforced() {
        return !shadow.contains("all");
    }

    Rule rule() {
        return rule;
    }

    /** Grows whenever limits of a type have changed that Kafka may have in its sensors (quotaResetRequired). */
    public int generation(int type) {
        return generations.get(type);
    }

    /** Returns whether the fence should turn requests back: all of them in a PAUSE, or those to held topics. */
    boolean turnsBack(Affected affected) {
        return affected == null ? paused() : affected.holds() && factored.contains(ClientQuotaType.PRODUCE);
    }

    boolean paused() {
        return value() <= 0 && factored.contains(ClientQuotaType.PRODUCE);
    }

    public Set<ClientQuotaType> factored() {
        return factored;
    }

    /** Returns the lowest limit that a factor makes: bytes/s, percent of a thread, or mutations/s. */
    public double floor(ClientQuotaType type) {
        return switch (type) {
            case PRODUCE, FETCH -> floorBytes;
            case REQUEST -> FLOOR_REQUEST;
            default -> FLOOR_MUTATION;
        };
    }

    // ---- under the table's lock -------------------------------------------------------------------------------

    /**
     * Moves the limits as far towards the factor in force as is allowed at this beat, and returns the resulting rule. lookedAt is
     * the beat at which the last complete measurement of stand-ins began.
     */
    Rule next(int beat, int lookedAt) {
        boolean fence = Fence.installed();
        Affected affected = fallback == null && fence ? hostAffected : null;
        Map<String, SlowedTopics> groups = affected != null && !inShadow() ? affected.groups() : Map.of();
        SlowedTopics volumes = groups.get(SlowedTopics.VOLUMES);
        double enforced = inShadow() ? 1 : value(), ofAll = volumes == null ? enforced : 1;
        // Whether the fence turns back all that the limits would slow.
        boolean holds = fence && !inShadow() && factored.contains(ClientQuotaType.PRODUCE);
        boolean heldForAll = holds && ofAll <= 0;
        TypeRule[] all = allTaps.step(ofAll, heldForAll, beat, lookedAt);
        groups.keySet().forEach(name -> slowedTaps.computeIfAbsent(name, any -> new Taps(beat)));
        Map<String, TypeRule[]> slowed = new HashMap<>();
        slowedTaps.forEach((name, taps) -> {
            boolean ofVolumes = name.equals(SlowedTopics.VOLUMES);
            SlowedTopics group = groups.get(name);
            double factor = ofVolumes ? enforced : Math.min(group == null ? 1 : group.factor(), ofAll);
            boolean held = heldForAll ? ofVolumes || group != null : holds && factor <= 0 && group != null && group.isHeld();
            TypeRule[] typeRules = taps.step(factor, held, beat, lookedAt);
            if (group != null) slowed.put(name, typeRules);
        });
        slowedTaps.entrySet().removeIf(of -> !of.getKey().equals(SlowedTopics.VOLUMES) && !groups.containsKey(of.getKey())
                && Arrays.stream(of.getValue().taps).allMatch(tap -> tap.value() >= 1));
        return new Rule(all, slowed, affected, !isEnforced(), windows, beat);
    }

    /** Puts a rule into force. If restless, limits differ at each beat, even if the old and the new rule are equal. */
    void hold(Rule next, boolean restless) {
        int changed = 0;
        for (int type = 0; type < QuotaTable.TYPES; type++) {
            boolean moves = restless && rule.now() != next.now() && (rule.factors(type) || next.factors(type));
            if (moves || !next.isSame(rule, type)) changed |= 1 << type;
        }
        if (changed != 0 || next.affected() != rule.affected()) put(next, changed);
    }

    /** Makes Kafka reread limits of some types (a bit for each), since their inputs have changed; each beat tries again. */
    void renew(int changed, int beat) {
        toRenew |= changed;
        if (toRenew == 0) return;
        put(rule.at(beat), toRenew); // if the heap is full, this fails, and a later beat retries
        toRenew = 0;
    }

    private void put(Rule next, int changed) {
        rule = next;
        for (int type = 0; type < QuotaTable.TYPES; type++) {
            if ((changed & 1 << type) == 0) continue;
            settleLater(type, next.now());
            generations.incrementAndGet(type);
        }
    }

    /** Makes Kafka read the limits of a type once more, a second later. Request threads may call it, too. */
    void settleLater(int type, int now) {
        settleAt[type] = now + QuotaTable.BEATS_PER_SECOND;
    }

    /**
     * Makes Kafka read limits once more a second after their last change: two request threads may have read them at the same
     * time, and the older value may have been written last.
     */
    void settle(int beat) {
        for (int type = 0; type < QuotaTable.TYPES; type++) {
            if (settleAt[type] == 0 || beat - settleAt[type] < 0) continue;
            settleAt[type] = 0;
            generations.incrementAndGet(type);
        }
    }

    /** The taps of clients that share a factor, by quota type. A fence may hold the tap of PRODUCE. */
    private final class Taps {
        private final Tap[] taps = {new Tap(), new Tap(), new Tap(), new Tap()};
        /** Whether clients without a quota were unlimited before the held PAUSE, which may have begun without a fence. */
        private boolean openBeforePause = true;
        /** The last beat at which clients without a quota were unlimited and not held, by quota type. */
        private final int[] openAt = new int[QuotaTable.TYPES];

        Taps(int beat) {
            Arrays.fill(openAt, beat);
        }

        /** Moves the taps towards this factor, or towards a type's own if that is smaller, and returns the rules by quota type. */
        TypeRule[] step(double factor, boolean held, int beat, int lookedAt) {
            TypeRule[] typeRules = new TypeRule[QuotaTable.TYPES];
            for (int at = 0; at < QuotaTable.TYPES; at++) {
                ClientQuotaType type = ClientQuotaType.values()[at];
                boolean multiplied = factored.contains(type), isHeld = at == PRODUCE && held;
                double own = inShadow() ? 1 : ofType(at).value, towards = multiplied ? Math.min(factor, own) : own;
                taps[at].step(windows, towards, isHeld, beat * QuotaTable.BEAT_MS);
                double value = taps[at].value();
                if (at == PRODUCE && factor > 0) openBeforePause = towards >= 1;
                boolean open = isHeld ? openBeforePause : towards >= 1;
                double aim = isHeld ? value : Math.max(value, towards); // a held factor of 0 does not apply to the limits
                boolean hasFallen = isHeld || !open;
                if (!hasFallen) openAt[at] = beat;
                typeRules[at] = !multiplied && own >= 1 && value >= 1 ? TypeRule.NONE
                        : new TypeRule(value, aim, open, floor(type), multiplied,
                                hasFallen ? openAt[at] : Tags.NEVER, hasFallen && lookedAt - openAt[at] > 0);
            }
            return typeRules;
        }
    }
}
