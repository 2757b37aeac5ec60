package org.quotahost.host;

import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The host's word that its factor still holds. When it isn't renewed for validity, the fallback's factor holds
 * instead, until it is. Kept by the monotonic clock, so a jump of the wall clock changes nothing.
 */
final class Lease {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.lease");

    private final LongSupplier nanoClock;
    private final Consumer<Double> fallback;
    private volatile long renewedAt;
    private volatile long validityNanos = 60_000_000_000L;
    private volatile String action = "OPEN";
    private volatile boolean expired;
    private volatile long applied;

    /** @param fallback is given the factor that holds while the lease has run out, and null when it is renewed */
    Lease(LongSupplier nanoClock, Consumer<Double> fallback) {
        this.nanoClock = nanoClock;
        this.fallback = fallback;
        this.renewedAt = nanoClock.getAsLong();
    }

    /** @param fallbackAction PAUSE or OPEN */
    void configure(long validityMs, String fallbackAction) {
        validityNanos = validityMs * 1_000_000;
        action = fallbackAction;
        if (expired) fallback.accept(factor());
    }

    void renew() {
        renewedAt = nanoClock.getAsLong();
    }

    /** How often check() must be called for the fallback to hold within validity. */
    long checkEveryMs() {
        return Math.max(20, Math.min(500, validityNanos / 1_000_000 / 10));
    }

    void check() {
        boolean silent = nanoClock.getAsLong() - renewedAt + checkEveryMs() * 1_000_000 >= validityNanos;
        if (silent == expired) return;
        expired = silent;
        if (silent) {
            applied = applied + 1;
            LOG.error("{}. Quotas already known stay in force; new clients share the newcomers' limit", sentence());
        } else {
            LOG.warn("The Python host answers again: its factor holds");
        }
        fallback.accept(silent ? factor() : null);
    }

    /** Why the fallback holds, once the lease has run out. */
    String sentence() {
        return "The Python host has been silent for %d ms (validity %d ms): fallback.action=%s holds until it answers again"
                .formatted(Math.round(ageSeconds() * 1_000), validityNanos / 1_000_000, action);
    }

    double ageSeconds() {
        return (nanoClock.getAsLong() - renewedAt) / 1e9;
    }

    boolean expired() {
        return expired;
    }

    long applied() {
        return applied;
    }

    private Double factor() {
        return action.equals("PAUSE") ? 0.0 : 1.0;
    }
}
