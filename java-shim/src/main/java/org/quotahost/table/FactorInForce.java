package org.quotahost.table;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.fence.Creation;
import org.quotahost.fence.Fence;

/**
 * The factor in force, which is the host's or the fallback's, and how all limits follow it.
 *
 * <p>Limits go down and up by a Tap. If there is a fence, a PAUSE is the fence's: it turns produce requests back, and
 * the produce limits go no lower than where they begin after the release. Limits change under the table's lock only.
 */
public final class FactorInForce {
    private final Scopes scopes;
    private final Object lock;
    private final Tap produceTap = new Tap();
    private final Tap tap = new Tap();
    private volatile Factor hostFactor = new Factor(1, "");
    /** Null while the host's factor is in force. */
    private volatile Double fallbackFactor;
    /** Whether the factor is below 1; then the rates of clients without a quota were read when it fell. */
    private boolean reduced;
    /** How often the factor has changed limits so far. */
    private volatile int steps;

    /** A factor (0..1) and its cause in words for an operator, which are read together. */
    public record Factor(double value, String cause) {}

    /** @param lock the table's */
    FactorInForce(Scopes scopes, Object lock) {
        this.scopes = scopes;
        this.lock = lock;
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
     * The number that produce limits are multiplied by now: the tap takes it to the factor in force, or, while the
     * fence holds a PAUSE, to where it begins after the release.
     */
    public double limitFactor() {
        synchronized (lock) {
            return produceTap.value();
        }
    }

    /** How often the factor has changed limits so far. No lock. */
    public int steps() {
        return steps;
    }

    /** Sets how quickly limits may move: by Kafka's windows and the longest mute that a step may cause (Tap). */
    void configure(int windows, long windowMs, long maxMuteMs) {
        synchronized (lock) {
            produceTap.configure(windows, windowMs, maxMuteMs);
            tap.configure(windows, windowMs, maxMuteMs);
        }
    }

    /** The rule with the factors as they are now; under the lock. */
    LimitRule rule(double floorBytes, Set<ClientQuotaType> factored, boolean shadow) {
        return new LimitRule(tap.value(), produceTap.value(), floorBytes, factored, shadow);
    }

    /** Sets the host's factor (0..1) and its cause. */
    void hostFactor(double value, String why) {
        if (!(value >= 0 && value <= 1)) throw new IllegalArgumentException("factor " + value + " is not in 0..1");
        hostFactor = new Factor(value, why);
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
            long now = TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
            if (produceTap.step(factor, heldByFence(factor), now) | tap.step(factor, false, now)) { // not ||: both move
                steps = steps + 1; // first, since request threads may see the new limits at once
                scopes.apply(scopes.rule().withFactors(tap.value(), produceTap.value()));
            }
            return true;
        }
    }

    /** Closes the fence for a PAUSE of PRODUCE, and opens it otherwise. Answers whether it is closed. */
    private boolean heldByFence(double factor) {
        boolean held = factor <= 0 && Fence.installed() && scopes.rule().factors(ClientQuotaType.PRODUCE.ordinal());
        // A controller that is no broker has no factor source: it knows no PAUSE but that of a silent host.
        Creation.pause(held);
        if (held) Fence.close();
        else Fence.open();
        return held;
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
