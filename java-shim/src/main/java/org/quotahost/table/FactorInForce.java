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
 * The factor in force (the host's, the fallback's, by quota type), in shadow or not, its floors, whether the fence
 * turns back in place of the limits (without one a factor for topics is for all), and when Kafka has to read limits again.
 *
 * <p>At each beat, and when something has been set, the limits go on by a Tap, and a new Rule holds. If it makes other
 * limits of a type than the last one, that type's generation grows. Under the table's lock, but for what others read.
 *
 * <p>If there is a fence, a PAUSE is the fence's: it turns produce requests back, and the produce limits go no lower than
 * where they begin after the release.
 */
public final class FactorInForce {
    static final int PRODUCE = ClientQuotaType.PRODUCE.ordinal(), FETCH = ClientQuotaType.FETCH.ordinal();
    /** The floors of the types without bytes: one percent of a thread, and one mutation in ten seconds. */
    static final double FLOOR_REQUEST = 1.0, FLOOR_MUTATION = 0.1;

    private static final Factor OPEN = new Factor(1, "");

    private final AtomicIntegerArray generations = new AtomicIntegerArray(QuotaTable.TYPES);
    /** By quota type, the beat at which Kafka has to read its limits once more (settle). */
    private final int[] settleAt = new int[QuotaTable.TYPES];
    /** As the host has set it last, whether or not the fallback is in force. */
    volatile Factor hostFactor = OPEN;
    /** The topics of its group, unless it is for all clients, and those of budgets; null for none. */
    Affected hostAffected;
    /** The host's further factors by quota type, all above 0: for all clients, and never a PAUSE. The smallest of all holds. */
    volatile Factor[] ofTypes = {OPEN, OPEN, OPEN, OPEN};
    /** The fallback's factor, while the host is silent; null while the host's is in force. */
    volatile Double fallback;
    /** The rules that are not enforced, by their names in the property shadow. */
    volatile List<String> shadow = List.of();
    private volatile Set<ClientQuotaType> factored = EnumSet.of(ClientQuotaType.PRODUCE);
    private volatile double floorBytes = 35_000;
    Windows windows = new Windows(11, 1_000, 30_000);
    /** Of all clients, or of those who don't write to affected topics. */
    private final Taps allTaps = new Taps(0);
    /**
     * Of those who write to affected topics, by group. Those of the volumes are followed while there are none, too, so that
     * a turn finds them; those of a budget until they are back at 1.
     */
    private final Map<String, Taps> slowedTaps = new HashMap<>(Map.of(SlowedTopics.VOLUMES, new Taps(0)));
    /** A bit for each quota type whose limits are to be made anew; under the table's lock. */
    private int toRenew;
    private volatile Rule rule = next(0, 0, Tags.NEVER);

    /** A factor (0..1) and its cause in words for an operator, which are read together. */
    public record Factor(double value, String cause) {}

    // ---- readers, any thread ---------------------------------------------------------------------------------

    public double value() {
        Double instead = fallback;
        return instead != null ? instead : hostFactor.value;
    }

    public Factor hostFactor() {
        return hostFactor;
    }

    /** The factor in force of one quota type alone, beside the other one; 1 while the fallback is. */
    public Factor ofType(int type) {
        return fallback == null ? ofTypes[type] : OPEN;
    }

    /**
     * The number that produce limits are multiplied by now, of those whom the factor is for: the tap takes it to the factor
     * in force, or, while the fence holds a PAUSE, to where it begins after the release.
     */
    public double limitFactor() {
        Rule now = rule;
        return now.slowed().getOrDefault(SlowedTopics.VOLUMES, now.all())[PRODUCE].factor();
    }

    /** "all" comes with "factor" and "topics". */
    public List<String> shadow() {
        return shadow;
    }

    /**
     * Whether the factor is computed and shown only: limits stay as with a factor of 1. In force again, they come down by
     * the tap.
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

    int generation(int type) {
        return generations.get(type);
    }

    /** Whether the fence is to turn requests back: all in a PAUSE, or those to held topics. */
    boolean turnsBack(Affected affected) {
        return affected == null ? paused() : affected.holds() && factored.contains(ClientQuotaType.PRODUCE);
    }

    boolean paused() {
        return value() <= 0 && factored.contains(ClientQuotaType.PRODUCE);
    }

    public Set<ClientQuotaType> factored() {
        return factored;
    }

    /** The lowest limit that it makes: bytes/s, percent of a thread, or mutations/s. */
    public double floor(ClientQuotaType type) {
        return switch (type) {
            case PRODUCE, FETCH -> floorBytes;
            case REQUEST -> FLOOR_REQUEST;
            default -> FLOOR_MUTATION;
        };
    }

    void configure(double floor, Set<ClientQuotaType> types) {
        floorBytes = floor;
        factored = types;
    }

    // ---- under the table's lock -------------------------------------------------------------------------------

    /**
     * Takes the limits as far towards the factor in force as is allowed now (monotonic), and answers the rule of them. At
     * the beat lookedAt was begun to look for what all use.
     */
    Rule next(long nowMs, int beat, int lookedAt) {
        boolean fence = Fence.installed();
        Affected affected = fallback == null && fence ? hostAffected : null;
        Map<String, SlowedTopics> groups = affected != null && !inShadow() ? affected.groups() : Map.of();
        SlowedTopics volumes = groups.get(SlowedTopics.VOLUMES);
        double enforced = inShadow() ? 1 : value(), ofAll = volumes == null ? enforced : 1;
        // Whether the fence turns back all that the limits would slow.
        boolean holds = fence && !inShadow() && factored.contains(ClientQuotaType.PRODUCE);
        boolean heldForAll = holds && ofAll <= 0;
        TypeRule[] all = allTaps.step(ofAll, heldForAll, nowMs, beat, lookedAt);
        groups.keySet().forEach(name -> slowedTaps.computeIfAbsent(name, any -> new Taps(beat)));
        Map<String, TypeRule[]> slowed = new HashMap<>();
        slowedTaps.forEach((name, taps) -> {
            boolean ofVolumes = name.equals(SlowedTopics.VOLUMES);
            SlowedTopics group = groups.get(name);
            double factor = ofVolumes ? enforced : Math.min(group == null ? 1 : group.factor(), ofAll);
            boolean held = heldForAll ? ofVolumes || group != null : holds && factor <= 0 && group != null && group.isHeld();
            TypeRule[] typeRules = taps.step(factor, held, nowMs, beat, lookedAt);
            if (group != null) slowed.put(name, typeRules);
        });
        slowedTaps.entrySet().removeIf(of -> !of.getKey().equals(SlowedTopics.VOLUMES) && !groups.containsKey(of.getKey())
                && Arrays.stream(of.getValue().taps).allMatch(tap -> tap.value() >= 1));
        return new Rule(all, slowed, affected, !isEnforced(), windows, beat);
    }

    /** Has the next rule hold; restless limits are others at each beat, though the rule makes the same ones. */
    void hold(Rule next, boolean restless) {
        int changed = 0;
        for (int type = 0; type < QuotaTable.TYPES; type++) {
            boolean moves = restless && rule.now() != next.now() && (rule.factors(type) || next.factors(type));
            if (moves || !next.isSame(rule, type)) changed |= 1 << type;
        }
        if (changed != 0 || next.affected() != rule.affected()) put(next, changed);
    }

    /** Has limits of some types, a bit for each, made anew, since what they are made of has changed; each beat asks again. */
    void renew(int changed, int beat) {
        toRenew |= changed;
        if (toRenew == 0) return;
        put(rule.at(beat), toRenew); // where the heap is full it fails, and a later beat does it
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

    /** Has Kafka read the limits of a type once more, a second later; request threads may say so, too. */
    void settleLater(int type, int now) {
        settleAt[type] = now + QuotaTable.BEATS_PER_SECOND;
    }

    /**
     * Has Kafka read limits once more a second after they have changed last: two request threads may have read them at the
     * same time, and the older reading may have been written last.
     */
    void settle(int beat) {
        for (int type = 0; type < QuotaTable.TYPES; type++) {
            if (settleAt[type] == 0 || beat - settleAt[type] < 0) continue;
            settleAt[type] = 0;
            generations.incrementAndGet(type);
        }
    }

    /** Of those who share a factor, by quota type; a fence may hold the one for PRODUCE. */
    private final class Taps {
        private final Tap[] taps = {new Tap(), new Tap(), new Tap(), new Tap()};
        /** Whether clients without a quota were unlimited before a PAUSE that the fence holds, which may have begun without one. */
        private boolean openBeforePause = true;
        /** By quota type, the last beat at which they were open and not held. */
        private final int[] openAt = new int[QuotaTable.TYPES];

        Taps(int beat) {
            Arrays.fill(openAt, beat);
        }

        /** Moves towards a factor, or that of a type if it is smaller, and answers how limits are made by quota type. */
        TypeRule[] step(double factor, boolean held, long nowMs, int beat, int lookedAt) {
            TypeRule[] typeRules = new TypeRule[QuotaTable.TYPES];
            for (int at = 0; at < QuotaTable.TYPES; at++) {
                ClientQuotaType type = ClientQuotaType.values()[at];
                boolean multiplied = factored.contains(type), isHeld = at == PRODUCE && held;
                double own = inShadow() ? 1 : ofType(at).value, towards = multiplied ? Math.min(factor, own) : own;
                taps[at].step(windows, towards, isHeld, nowMs);
                double value = taps[at].value();
                if (at == PRODUCE && factor > 0) openBeforePause = towards >= 1;
                boolean open = isHeld ? openBeforePause : towards >= 1;
                double aim = isHeld ? value : towards; // a factor of 0 that the fence holds isn't the limits'
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
