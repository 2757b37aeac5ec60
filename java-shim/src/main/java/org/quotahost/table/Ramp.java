package org.quotahost.table;

import java.util.ArrayDeque;

/**
 * Takes the factor down in steps that mute no client for longer than max.mute, and up at once.
 *
 * <p>Kafka's throttle time is (rate - bound) / bound x window. A client at its bound q, measured over a window of W
 * seconds, is muted for at most D seconds if the bound goes no lower than q x W / (W + D). W seconds later its window
 * contains nothing from before the step, and the next step may follow. FactorInForce calls it under the table's lock.
 */
final class Ramp {
    /**
     * Below this value the limits of all but absurdly high quotas are at the floor: the ramp goes to its target at
     * once.
     */
    private static final double NEGLIGIBLE = 1e-5;

    private long windowNanos = 11_000_000_000L;
    /** The part of a value that one step leaves: W / (W + D). */
    private double share = 11.0 / (11 + 30);
    private double target = 1;
    private double value = 1;
    /** The higher values of the last window, with the time at which each was left: the oldest and highest first. */
    private final ArrayDeque<PastValue> past = new ArrayDeque<>();

    private record PastValue(double value, long leftAt) {}

    /**
     * Sets the pace.
     *
     * @param windowMs how far back Kafka looks: (quota.window.num + 1) x quota.window.size.seconds
     * @param maxMuteMs the longest mute that a step may cause
     */
    void configure(long windowMs, long maxMuteMs) {
        windowNanos = windowMs * 1_000_000;
        share = (double) windowMs / (windowMs + maxMuteMs);
    }

    /** Sets the target, to which step() goes. */
    void aim(double factor) {
        target = factor;
    }

    double value() {
        return value;
    }

    /** Moves as far towards the target as is allowed now (System.nanoTime). Answers whether the value has changed. */
    boolean step(long now) {
        while (!past.isEmpty() && now - past.peekFirst().leftAt >= windowNanos) past.removeFirst();
        double highest = past.isEmpty() ? value : Math.max(value, past.peekFirst().value);
        double lowest = highest * share < NEGLIGIBLE ? 0 : highest * share;
        double next = Math.max(target, Math.min(value, lowest));
        if (next == value) return false;
        while (!past.isEmpty() && past.peekLast().value <= value) past.removeLast();
        past.addLast(new PastValue(value, now));
        value = next;
        return true;
    }
}
