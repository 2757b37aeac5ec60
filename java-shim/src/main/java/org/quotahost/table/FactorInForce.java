package org.quotahost.table;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.fence.Fence;

/**
 * The factor in force, the host's or the fallback's, and the way of all limits to it.
 *
 * <p>Down it goes by a Ramp, up at once. A PAUSE is the fence's where there is one: the produce limits stay. Limits
 * change under the table's lock only.
 */
public final class FactorInForce {
    private final Scopes scopes;
    private final Object lock;
    private final Ramp produceRamp = new Ramp();
    private final Ramp ramp = new Ramp();
    private double factorBeforePause = 1;
    private volatile double hostFactor = 1;
    private volatile String reason = "";
    private volatile Double fallbackFactor;
    /** The factor is below 1, and what clients without a quota did before is measured. */
    private volatile boolean reduced;

    /** @param lock the table's */
    FactorInForce(Scopes scopes, Object lock) {
        this.scopes = scopes;
        this.lock = lock;
    }

    public double value() {
        Double instead = fallbackFactor;
        return instead != null ? instead : hostFactor;
    }

    /** Why the host's factor is what it is. */
    public String reason() {
        return reason;
    }

    /** What produce limits are multiplied by: on its way to the factor in force, or held where the fence took over. */
    public double limitFactor() {
        synchronized (lock) {
            return produceRamp.value();
        }
    }

    /** How quickly the factor may fall: Kafka's window and the longest mute that a step may cause. */
    void configure(long windowMs, long maxMuteMs) {
        synchronized (lock) {
            produceRamp.configure(windowMs, maxMuteMs);
            ramp.configure(windowMs, maxMuteMs);
        }
    }

    /** The rule with the factors as they are now; under the lock. */
    LimitRule rule(double floorBytes, Set<ClientQuotaType> factored, boolean shadow) {
        return new LimitRule(ramp.value(), produceRamp.value(), floorBytes, factored, shadow);
    }

    /** The factor that the host found, and why. */
    void found(double value, String why) {
        if (!(value >= 0 && value <= 1)) throw new IllegalArgumentException("factor " + value + " is not in 0..1");
        hostFactor = value;
        reason = why;
        move();
    }

    /** While the host is silent the fallback's factor holds; null gives the host's back. */
    public void fallback(Double factor) {
        fallbackFactor = factor;
        move();
    }

    /** Takes the limits towards the factor in force as far as max.mute allows now; called until they are there. */
    public void move() {
        Map<Integer, Map<List<String>, Double>> rates = value() < 1 && !reduced ? rates() : Map.of();
        synchronized (lock) {
            double factor = value();
            reduced = factor < 1;
            if (factor > 0) factorBeforePause = factor;
            produceRamp.aim(fenced(factor) ? factorBeforePause : factor);
            ramp.aim(factor);
            rates.forEach((type, measured) -> scopes.measured(type, measured, scopes.rule().floor(type)));
            long now = System.nanoTime();
            if (produceRamp.step(now) | ramp.step(now)) {
                scopes.apply(scopes.rule().withFactors(ramp.value(), produceRamp.value()));
            }
        }
    }

    /** Whether the fence holds this PAUSE, so that letting go is immediate. */
    private boolean fenced(double factor) {
        boolean held = factor <= 0 && Fence.installed() && scopes.rule().factors(ClientQuotaType.PRODUCE.ordinal());
        if (held) Fence.close();
        else Fence.open();
        return held;
    }

    /** What clients do right now, for those without a quota that the factor could act on. */
    private Map<Integer, Map<List<String>, Double>> rates() {
        Map<Integer, Map<List<String>, Double>> rates = new HashMap<>();
        for (ClientQuotaType type : ClientQuotaType.values()) {
            if (scopes.rule().factors(type.ordinal())) rates.put(type.ordinal(), KafkaRates.of(type));
        }
        return rates;
    }
}
