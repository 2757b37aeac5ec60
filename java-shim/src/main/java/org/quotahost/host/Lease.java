package org.quotahost.host;

import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The lease by which the host's factor is in force: Python renews it whenever it asks for work, and if it does not for
 * validity, because a plugin hangs, fallback.action is in force until it does. It goes by the monotonic clock.
 */
final class Lease {
    static final long CHECK_MS = 50;
    /** From then on a silence is told, which keeps new clients waiting. */
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
    /** How many times the fallback has come into force. */
    volatile long applied;

    /** @param fallback gets the fallback's factor when the lease has run out, and null when it is renewed */
    Lease(LongSupplier nanoClock, Consumer<Double> fallback) {
        this.nanoClock = nanoClock;
        this.fallback = fallback;
        renew();
        checkedAt = renewedAt;
    }

    /** Python has called, so it is alive; a shorter validity begins now. What is in force stays until it asks for work. */
    void configure(long validity, String fallbackAction) {
        validityMs = validity;
        action = fallbackAction;
        if (!expired) renew();
    }

    void renew() {
        renewedAt = nanoClock.getAsLong();
    }

    /** Puts the fallback in force if the lease has run out, and ends it if the lease was renewed. */
    synchronized void check() {
        long now = nanoClock.getAsLong(), passed = now - checkedAt;
        checkedAt = now;
        // This process was stopped itself (SIGSTOP, a long collection of garbage): the host could not ask for work.
        if (!expired && passed / 1_000_000 > validityMs / 2) renew();
        // One interval early, since the next check comes only after it. By the same time, as a stop may have come since.
        boolean silent = (now - renewedAt) / 1_000_000 >= validityMs - CHECK_MS;
        if (silent == expired) return;
        fallback.accept(!silent ? null : action.equals("PAUSE") ? 0.0 : 1.0);
        expired = silent;
        if (silent) applied = applied + 1;
    }

    /** Logs that the fallback has come into force, or that it has ended. */
    void log() {
        boolean silent = expired;
        if (silent == logged) return;
        logged = silent;
        if (silent) LOG.error("{}. Quotas already known stay in force; new clients share the newcomers' limit", cause(""));
        else LOG.warn("The Python host answers again: its factor is in force");
    }

    /** Why the fallback is in force; before that the cause of the host's factor, and that the host is silent, if it is. */
    String cause(String ofHost) {
        if (!expired && ageSeconds() < NOTICED_SECONDS) return ofHost;
        String silence = "The Python host has been silent for %d ms (validity %d ms): %sfallback.action=%s holds until it answers again"
                .formatted(Math.round(ageSeconds() * 1_000), validityMs, expired ? "" : "then ", action);
        return expired || ofHost.isEmpty() ? silence : ofHost + "; " + silence;
    }

    double ageSeconds() {
        return (nanoClock.getAsLong() - renewedAt) / 1e9;
    }

    /** Whether it was not renewed for validity. */
    boolean silent() {
        return ageSeconds() * 1_000 >= validityMs;
    }
}
