package org.quotahost.host;

import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The lease by which the host's factor is in force: Python renews the lease whenever it asks for work. If it is not renewed for
 * validity, because a plugin hangs, fallback.action is in force until the next renewal. The lease uses the monotonic clock.
 */
final class Lease {
    static final long CHECK_MS = 50;
    /** A longer silence is reported, since new clients wait meanwhile. */
    private static final double NOTICED_SECONDS = 3;
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.lease");

    private final LongSupplier nanoClock;
    private final Consumer<Double> fallback;
    private volatile long renewedAt;
    private long checkedAt;
    private boolean logged;
    private volatile long validityMs = 60_000;
    private volatile String action = "OPEN";
    volatile boolean expired;
    /** The number of times that the fallback came into force. */
    volatile long applied;

    /** @param fallback gets the fallback's factor when the lease has expired, and null when it is renewed */
    Lease(LongSupplier nanoClock, Consumer<Double> fallback) {
        this.nanoClock = nanoClock;
        this.fallback = fallback;
        renew();
        checkedAt = renewedAt;
    }

    /** Sets the lease. Python has called, so a shorter validity begins now. A fallback stays until Python asks for work. */
    void configure(long validity, String fallbackAction) {
        validityMs = validity;
        action = fallbackAction;
        if (!expired) renew();
    }

    void renew() {
        renewedAt = nanoClock.getAsLong();
    }

    /** Puts the fallback into force if the lease has expired, and ends it if the lease was renewed. */
    synchronized void check() {
        long now = nanoClock.getAsLong(), passed = now - checkedAt;
        checkedAt = now;
        // This JVM itself was stopped (SIGSTOP, a long garbage collection), so the host could not ask for work.
        if (!expired && passed / 1_000_000 > validityMs / 2) renew();
        // The lease expires one interval early, since the next check comes later. now is not read again: a stop may have come since.
        boolean silent = (now - renewedAt) / 1_000_000 >= validityMs - CHECK_MS;
        if (silent == expired) return;
        fallback.accept(!silent ? null : action.equals("PAUSE") ? 0.0 : 1.0);
        expired = silent;
        if (silent) applied = applied + 1;
    }

    /** Logs that the fallback has come into force or has ended. */
    void log() {
        boolean silent = expired;
        if (silent == logged) return;
        logged = silent;
        if (silent) LOG.error("{}. Quotas already known stay in force; new clients share the newcomers' limit", cause(""));
        else LOG.info("The Python host answers again: its factor is in force");
    }

    /** Returns why the fallback is in force; before that the cause of the host's factor, and the host's silence if it is silent. */
    String cause(String ofHost) {
        if (!expired && ageSeconds() < NOTICED_SECONDS) return ofHost;
        String silence = "The Python host has been silent for %s ms (validity %s ms): %sfallback.action=%s holds until it answers again"
                .formatted(Math.round(ageSeconds() * 1_000), validityMs, expired ? "" : "then ", action);
        return expired || ofHost.isEmpty() ? silence : ofHost + "; " + silence;
    }

    double ageSeconds() {
        return (nanoClock.getAsLong() - renewedAt) / 1e9;
    }

    /** Returns whether the lease was not renewed for validity. */
    boolean silent() {
        return ageSeconds() * 1_000 >= validityMs;
    }
}
