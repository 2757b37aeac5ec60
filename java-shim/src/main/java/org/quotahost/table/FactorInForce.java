package org.quotahost.table;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongSupplier;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.fence.Creation;
import org.quotahost.fence.Fence;
import org.quotahost.table.LimitRule.Opens;

/**
 * The factor in force, which is the host's or the fallback's, and how all limits follow it.
 *
 * <p>Limits go down and up by a Tap. If there is a fence, a PAUSE is the fence's: it turns produce requests back, and
 * the produce limits go no lower than where they begin after the release. Limits change under the table's lock only.
 */
public final class FactorInForce {
    private static final Opens OPEN = new Opens(true, true);

    private static final boolean[] EVERY_TYPE = {true, true, true, true};

    private final Scopes scopes;
    private final Slowing slowing;
    private final Object lock;
    private final LongSupplier clock;
    private final Tap produceTap = new Tap();
    private final Tap tap = new Tap();
    /** Of those who write to affected topics; it is followed while there are none, too, so that a turn to them finds it. */
    private final Tap slowedProduceTap = new Tap();
    private final Tap slowedTap = new Tap();
    private volatile Factor hostFactor = new Factor(1, "");
    /** Whom the host's factor is for: who writes to these topics, or null for all clients. */
    private volatile Affected hostAffected;
    /** Null while the host's factor is in force. */
    private volatile Double fallbackFactor;
    /** Whether the factor is below 1; then the rates of clients without a quota were read when it fell. */
    private boolean reduced;
    /** For which types clients without a quota are unlimited now. */
    private Opens opens = OPEN;
    private boolean openBeforePause = true;
    /** Limits stay as with a factor of 1, and what the factor would do is shown only. */
    private volatile boolean shadow;
    /** How often the factor has changed limits so far. */
    private volatile int steps;

    /** A factor (0..1) and its cause in words for an operator, which are read together. */
    public record Factor(double value, String cause) {}

    /**
     * @param lock the table's
     * @param clock monotonic, in ms
     */
    FactorInForce(Scopes scopes, Slowing slowing, Object lock, LongSupplier clock) {
        this.scopes = scopes;
        this.slowing = slowing;
        this.lock = lock;
        this.clock = clock;
    }

    public double value() {
        Double fallback = fallbackFactor;
        return fallback != null ? fallback : hostFactor.value;
    }

    /** The factor that the host has set last, whether or not the fallback is in force. */
    public Factor hostFactor() {
        return hostFactor;
    }

    /**
     * The number that produce limits are multiplied by now, of those whom the factor is for: the tap takes it to the factor in force, or, while the
     * fence holds a PAUSE, to where it begins after the release.
     */
    public double limitFactor() {
        synchronized (lock) {
            return (slowing.slows() ? slowedProduceTap : produceTap).value();
        }
    }

    /** How often the factor has changed limits so far. No lock. */
    public int steps() {
        return steps;
    }

    /** Sets how quickly limits may move: by Kafka's windows and the longest mute that a step may cause (Tap). */
    void configure(int windows, long windowMs, long maxMuteMs) {
        synchronized (lock) {
            for (Tap each : List.of(produceTap, tap, slowedProduceTap, slowedTap)) {
                each.configure(windows, windowMs, maxMuteMs);
            }
            slowing.configure(windows, windowMs, maxMuteMs);
        }
    }

    /** The rule with the factors as they are now; under the lock. */
    LimitRule rule(double floorBytes, Set<ClientQuotaType> factored, boolean shadow) {
        double factor = value();
        if (!slowing.slows()) {
            double aim = shadow ? 1 : factor;
            return new LimitRule(tap.value(), produceTap.value(), aim, opens, floorBytes, factored, shadow, null);
        }
        double aim = Fence.closed() ? 1 : factor; // while the fence holds a PAUSE the factor of 0 is not the limits'
        var slowed =
                new LimitRule(slowedTap.value(), slowedProduceTap.value(), aim, opens, floorBytes, factored, shadow, null);
        return new LimitRule(tap.value(), produceTap.value(), 1, OPEN, floorBytes, factored, shadow, slowed);
    }

    /**
     * The rule for those whom the factor is for, as it would be if no rule were in shadow; under the lock. It knows
     * nothing of taps: the limits would have arrived.
     */
    LimitRule ruleWithoutShadow() {
        LimitRule now = scopes.rule();
        double factor = value();
        return new LimitRule(factor, factor, now.floorBytes(), now.factored(), false);
    }

    /** Puts the factor in shadow, or in force: then limits come down to it by the tap, as from 1. */
    void shadow(boolean on) {
        synchronized (lock) {
            if (on == shadow) return;
            shadow = on;
            reduced = false; // the rates of clients without a quota are not those of the time when the factor fell
        }
        move();
    }

    boolean inShadow() {
        return shadow;
    }

    /** Sets the host's factor (0..1), its cause, and whom it is for: who writes to these topics, or null for all clients. */
    void hostFactor(double value, String why, Affected affected) {
        if (!(value >= 0 && value <= 1)) throw new IllegalArgumentException("factor " + value + " is not in 0..1");
        synchronized (lock) { // move() must not see the one without the other
            hostFactor = new Factor(value, why);
            hostAffected = affected;
        }
        move();
    }

    /** Puts the fallback's factor in force, while the host is silent; null gives the host's back. */
    public void fallback(Double factor) {
        fallbackFactor = factor;
        move();
    }

    /** Takes the limits as far towards the factor in force as is allowed now; Watch calls it until they are there. */
    public void move() {
        Map<Integer, Map<List<String>, Double>> rates = null;
        while (!moved(rates)) rates = rates();
    }

    /** Answers false if it needs the rates of clients without a quota first, and then changes nothing. */
    private boolean moved(Map<Integer, Map<List<String>, Double>> rates) {
        synchronized (lock) {
            double factor = value();
            // Only when the factor falls below 1: later on the rates are those of throttled clients. Kafka's MBeans are
            // read without the lock, but whether they are needed is decided under it: another thread may set another
            // factor meanwhile, and without rates these clients would stay unlimited until the factor is 1 again.
            if (factor < 1 && !reduced && rates == null) return false;
            if (factor < 1 && !reduced) {
                rates.forEach((type, measured) -> scopes.standIns(type, measured, scopes.rule().floor(type)));
            }
            reduced = factor < 1;
            follow(factor, clock.getAsLong());
            return true;
        }
    }

    private void follow(double factor, long now) {
        Affected some = factor < 1 && fallbackFactor == null && Fence.installed() ? hostAffected : null;
        boolean turned = slowing.affect(some, shadow);
        boolean slows = slowing.slows();
        boolean held = heldByFence(factor, some) && !shadow;
        double enforced = shadow ? 1 : factor;
        boolean slowedMoved = slowedProduceTap.step(enforced, held, now) | slowedTap.step(enforced, false, now);
        double ofAll = slows ? 1 : enforced;
        boolean moved = produceTap.step(ofAll, !slows && held, now) | tap.step(ofAll, false, now); // not ||: both move
        // While the fence holds a PAUSE, whether the unlimited are slowed stays as it was before the PAUSE, which may have
        // begun before there was a fence.
        if (enforced > 0) openBeforePause = enforced >= 1;
        Opens before = opens;
        opens = new Opens(held ? openBeforePause : enforced >= 1, enforced >= 1);
        if (moved || turned || slows && slowedMoved || !opens.equals(before)) {
            steps = steps + 1; // first, since request threads may see the new limits at once
            LimitRule rule = scopes.rule();
            scopes.apply(rule(rule.floorBytes(), rule.factored(), rule.shadow()));
            if (turned) scopes.bump(EVERY_TYPE); // a twin's limits may differ from what Kafka has of an earlier one
        }
        boolean[] reset = new boolean[Tags.TYPES];
        if (slowing.step(now, reset)) steps = steps + 1;
        scopes.bump(reset);
    }

    /**
     * Closes the fence for a PAUSE of PRODUCE, and opens it otherwise. Answers whether it turns back all that the limits
     * would slow.
     */
    private boolean heldByFence(double factor, Affected some) {
        boolean zero = factor <= 0 && scopes.rule().factors(ClientQuotaType.PRODUCE.ordinal());
        Creation.pause(zero); // also on a controller that is no broker, where nobody produces and no fence is installed
        boolean pause = zero && Fence.installed();
        Fence.state(pause, some);
        return pause && (some == null || some.holdsAll());
    }

    /** The rates that Kafka measures now, by factored type: the factor multiplies them for clients without a quota. */
    private Map<Integer, Map<List<String>, Double>> rates() {
        Map<Integer, Map<List<String>, Double>> rates = new HashMap<>();
        for (ClientQuotaType type : ClientQuotaType.values()) {
            if (scopes.rule().factors(type.ordinal())) rates.put(type.ordinal(), KafkaRates.of(type));
        }
        return rates;
    }
}
