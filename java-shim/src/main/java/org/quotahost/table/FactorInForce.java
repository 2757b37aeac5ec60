package org.quotahost.table;

import java.util.EnumSet;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.table.Marks.Affected;
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

    private final BooleanSupplier fenceInstalled;
    /** Of all clients: for PRODUCE, which a fence may hold, and for the other types. */
    private final Tap produceTap = new Tap(), tap = new Tap();
    /** Of those who write to affected topics; they are followed while there are none, too, so that a turn finds them. */
    private final Tap slowedProduceTap = new Tap(), slowedTap = new Tap();
    private volatile Factor hostFactor = new Factor(1, "");
    /** Whom the host's factor is for: who writes to these topics, or null for all clients. */
    private Affected hostAffected;
    /** Null while the host's factor is in force. */
    private volatile Double fallback;
    /** The factor is computed and shown, and limits stay as with a factor of 1; or nothing at all is enforced. */
    private volatile boolean inShadow, everythingInShadow;
    private volatile Set<ClientQuotaType> factored = EnumSet.of(ClientQuotaType.PRODUCE);
    private volatile double floorBytes = 35_000;
    private Windows windows = new Windows(11, 1_000, 0.286);
    private double[] newcomers = {Double.NaN, Double.NaN, Double.NaN, Double.NaN};
    /** Whether clients without a quota were unlimited before a PAUSE that the fence holds, which may have begun without one. */
    private boolean openBeforePause = true;
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
        for (Tap each : new Tap[] {produceTap, tap, slowedProduceTap, slowedTap}) each.configure(number, windowMs, maxMuteMs);
        windows = new Windows(number, windowMs, Tap.stepShare(number, windowMs, maxMuteMs));
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
        double factor = value();
        boolean fence = fenceInstalled.getAsBoolean();
        affected = factor < 1 && fallback == null && fence ? hostAffected : null;
        double enforced = inShadow ? 1 : factor;
        boolean holdsAll = affected == null || affected.held().size() == affected.places().size();
        // Whether the fence turns back all that the limits would slow.
        boolean held = paused() && fence && !inShadow && holdsAll;
        boolean some = slows();
        slowedProduceTap.step(enforced, held, nowMs);
        slowedTap.step(enforced, false, nowMs);
        produceTap.step(some ? 1 : enforced, held && !some, nowMs);
        tap.step(some ? 1 : enforced, false, nowMs);
        if (enforced > 0) openBeforePause = enforced >= 1;
        limitFactor = (some ? slowedProduceTap : produceTap).value();
        boolean openProduce = held ? openBeforePause : enforced >= 1;
        double aim = some && paused() ? 1 : enforced; // a factor of 0 is the fence's and not the limits'
        Course[] slowed = some ? courses(slowedProduceTap, slowedTap, aim, held, openProduce, enforced >= 1) : null;
        Course[] all = some ? courses(produceTap, tap, 1, false, true, true)
                : courses(produceTap, tap, enforced, held, openProduce, enforced >= 1);
        return new Rule(all, slowed, everythingInShadow, newcomers, windows, beat);
    }

    private Course[] courses(Tap produce, Tap others, double aim, boolean held, boolean openProduce, boolean open) {
        Course[] courses = new Course[QuotaTable.TYPES];
        for (int at = 0; at < QuotaTable.TYPES; at++) {
            ClientQuotaType type = ClientQuotaType.values()[at];
            courses[at] = !factored.contains(type) ? Course.NONE
                    : at == PRODUCE ? new Course(produce.value(), held ? produce.value() : aim, openProduce, floor(type))
                    : new Course(others.value(), aim, open, floor(type));
        }
        return courses;
    }
}
