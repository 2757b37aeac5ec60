package org.quotahost.table;

import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.table.Marks.Affected;
import org.quotahost.table.Marks.Group;
import org.quotahost.table.Rule.Course;
import org.quotahost.table.Rule.Windows;

/**
 * The factor in force, which is the host's or the fallback's, and the rule that it makes at each moment. All of it is under
 * the table's lock, but for what others read.
 *
 * <p>Limits go down and up by a Tap. If there is a fence, a PAUSE is the fence's: it turns produce requests back, and the
 * produce limits go no lower than where they begin after the release.
 */
public final class FactorInForce {
    private static final int PRODUCE = ClientQuotaType.PRODUCE.ordinal();
    /** The floors of the types without bytes: one percent of a thread, and one mutation in ten seconds. */
    static final double FLOOR_REQUEST = 1.0, FLOOR_MUTATION = 0.1;

    private static final Factor OPEN = new Factor(1, "");

    private final BooleanSupplier fenceInstalled;
    private volatile Factor hostFactor = OPEN;
    /** The host's further factors by quota type, all above 0: for all clients, and never a PAUSE. */
    private volatile Factor[] ofTypes = {OPEN, OPEN, OPEN, OPEN};
    /** Whom the host's factor is for: who writes to these topics, or null for all clients. */
    private Affected hostAffected;
    /** Null while the host's factor is in force. */
    private volatile Double fallback;
    /** The factor is computed and shown, and limits stay as with a factor of 1; or nothing at all is enforced. */
    private volatile boolean inShadow, everythingInShadow;
    private volatile Set<ClientQuotaType> factored = EnumSet.of(ClientQuotaType.PRODUCE);
    private volatile double floorBytes = 35_000;
    private Windows windows = new Windows(11, 1_000, 0.286);
    private long maxMuteMs = 30_000;
    /** Of all clients, or of those who don't write to affected topics. */
    private final Taps allTaps = new Taps();
    /**
     * Of those who write to affected topics, by group. Those of the volumes are followed while there are none, too, so that
     * a turn finds them; those of a budget until they are back at 1.
     */
    private final Map<String, Taps> slowedTaps = new HashMap<>(Map.of(Group.VOLUMES, new Taps()));
    private double[] newcomers = {Double.NaN, Double.NaN, Double.NaN, Double.NaN};
    private volatile Affected affected;
    private volatile double limitFactor = 1;

    /** A factor (0..1) and its cause in words for an operator, which are read together. */
    public record Factor(double value, String cause) {}

    FactorInForce(BooleanSupplier fenceInstalled) {
        this.fenceInstalled = fenceInstalled;
    }

    // ---- readers, any thread ---------------------------------------------------------------------------------

    /** The factor in force, 0..1. */
    public double value() {
        Double instead = fallback;
        return instead != null ? instead : hostFactor.value;
    }

    /** The factor that the host has set last, whether or not the fallback is in force. */
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
        return limitFactor;
    }

    /** Whether the factor is computed and shown only. */
    public boolean inShadow() {
        return inShadow || everythingInShadow;
    }

    /** Whether limits are enforced at all (mode). */
    public boolean isEnforced() {
        return !everythingInShadow;
    }

    /** The topics whose writers the factor is for; null while it is for all clients. */
    Affected affected() {
        return affected;
    }

    /** Whether the factor is for some clients only, and in force. */
    boolean slows() {
        return affected != null && !inShadow;
    }

    /** Whether the fence is to turn requests back: all in a PAUSE, or those to held topics. */
    boolean turnsBack() {
        boolean holds = affected == null ? value() <= 0 : affected.holds();
        return holds && factored.contains(ClientQuotaType.PRODUCE);
    }

    /** Whether it is a PAUSE: produce requests stop, and so do new topics and partitions. */
    boolean paused() {
        return value() <= 0 && factored.contains(ClientQuotaType.PRODUCE);
    }

    /** The quota types that it multiplies. */
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

    // ---- under the table's lock; the next rule() follows from it ----------------------------------------------

    /** Sets how quickly limits may move: by Kafka's windows and the longest mute that a step may cause (Tap). */
    void windows(int number, long windowMs, long maxMuteMs) {
        windows = new Windows(number, windowMs, Tap.stepShare(number, windowMs, maxMuteMs));
        this.maxMuteMs = maxMuteMs;
        allTaps.configure();
        slowedTaps.values().forEach(Taps::configure);
    }

    void configure(double floor, Set<ClientQuotaType> types, boolean shadowOfAll, double[] newcomerRates) {
        floorBytes = floor;
        factored = types;
        everythingInShadow = shadowOfAll;
        newcomers = newcomerRates.clone();
    }

    /** Puts the factor in shadow, or in force: then limits come down to it by the tap, as from 1. */
    void shadow(boolean on) {
        inShadow = on;
    }

    void host(Factor factor, Affected topics) {
        hostFactor = factor;
        hostAffected = topics;
    }

    /** By quota type. Each goes with the other factors: the smallest holds. */
    void ofTypes(Factor[] factors) {
        ofTypes = factors;
    }

    /** Puts the fallback's factor in force, while the host is silent; null gives the host's back. */
    void fallback(Double factor) {
        fallback = factor;
    }

    /**
     * Takes the limits as far towards the factor in force as is allowed now, and answers the rule that makes them.
     *
     * @param nowMs monotonic
     */
    Rule rule(long nowMs, int beat) {
        boolean fence = fenceInstalled.getAsBoolean();
        affected = fallback == null && fence ? hostAffected : null;
        double enforced = inShadow ? 1 : value();
        Group volumes = affected == null ? null : affected.groups().get(Group.VOLUMES);
        boolean some = slows();
        boolean forAll = volumes == null;
        // Whether the fence turns back all that the limits would slow.
        boolean holds = fence && !inShadow && factored.contains(ClientQuotaType.PRODUCE);
        boolean held = holds && enforced <= 0 && (forAll || volumes.held());
        Course[] all = allTaps.step(forAll ? enforced : 1, held && forAll, forAll ? enforced : 1, nowMs);
        Map<String, Course[]> slowed = some ? new HashMap<>() : null;
        Course[] ofVolumes = slowedTaps.get(Group.VOLUMES).step(enforced, held, aim(enforced), nowMs);
        if (some && volumes != null) slowed.put(Group.VOLUMES, ofVolumes);
        if (some) affected.groups().keySet().forEach(name -> slowedTaps.computeIfAbsent(name, any -> new Taps()));
        slowedTaps.forEach((name, taps) -> {
            if (name.equals(Group.VOLUMES)) return;
            Group budget = some ? affected.groups().get(name) : null;
            double factor = Math.min(budget == null ? 1 : budget.factor(), forAll ? enforced : 1);
            boolean heldBudget = holds && budget != null && factor <= 0 && (budget.held() || held && forAll);
            Course[] courses = taps.step(factor, heldBudget, aim(factor), nowMs);
            if (budget != null) slowed.put(name, courses);
        });
        slowedTaps.entrySet().removeIf(group -> !group.getKey().equals(Group.VOLUMES) && group.getValue().isOpen()
                && (!some || !affected.groups().containsKey(group.getKey())));
        limitFactor = (some && !forAll ? slowedTaps.get(Group.VOLUMES) : allTaps).produce();
        return new Rule(all, slowed, everythingInShadow, newcomers, windows, beat);
    }

    /** A factor of 0 is the fence's and not the limits'. */
    private double aim(double factor) {
        return factor <= 0 && factored.contains(ClientQuotaType.PRODUCE) ? 1 : factor;
    }

    /** The taps of those who share a factor, by quota type; a fence may hold the one for PRODUCE. */
    private final class Taps {
        private final Tap[] taps = {new Tap(), new Tap(), new Tap(), new Tap()};
        /** Whether clients without a quota were unlimited before a PAUSE that the fence holds, which may have begun without one. */
        private boolean openBeforePause = true;

        Taps() {
            configure();
        }

        void configure() {
            for (Tap tap : taps) tap.configure(windows.number(), windows.ms(), maxMuteMs);
        }

        double produce() {
            return taps[PRODUCE].value();
        }

        boolean isOpen() {
            return Arrays.stream(taps).allMatch(tap -> tap.value() >= 1);
        }

        /** Moves towards a factor, or that of a type if it is smaller, and answers how limits are made by quota type. */
        Course[] step(double factor, boolean held, double aim, long nowMs) {
            Course[] courses = new Course[QuotaTable.TYPES];
            for (int at = 0; at < QuotaTable.TYPES; at++) {
                ClientQuotaType type = ClientQuotaType.values()[at];
                boolean multiplied = factored.contains(type), isHeld = at == PRODUCE && held;
                double own = inShadow ? 1 : ofType(at).value, towards = multiplied ? Math.min(factor, own) : own;
                taps[at].step(towards, isHeld, nowMs);
                double value = taps[at].value();
                if (at == PRODUCE && factor > 0) openBeforePause = towards >= 1;
                boolean open = isHeld ? openBeforePause : towards >= 1;
                double next = isHeld ? value : Math.min(multiplied ? aim : 1, own);
                courses[at] = !multiplied && own >= 1 && value >= 1 ? Course.NONE : new Course(value, next, open, floor(type));
            }
            return courses;
        }
    }
}
