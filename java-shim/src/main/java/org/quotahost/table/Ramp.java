package org.quotahost.table;

import java.util.ArrayDeque;

/**
 * Takes the factor down in steps that mute no client for longer than max.mute; upwards at once.
 *
 * <p>Kafka's throttle time is (rate - bound) / bound x window. A client at its bound q, measured over a window of W
 * seconds, is muted for at most D seconds if the bound goes no lower than q x W / (W + D); after W seconds its window
 * holds nothing from before the step, and the next one may follow. All calls are made under the table's lock.
 */
final class Ramp {
    /** Below this the limits of all but absurdly wide quotas are at the floor: then the target itself is taken. */
    private static final double SMALLEST = 1e-5;

    private long windowNanos = 11_000_000_000L;
    private double share = 11.0 / (11 + 30);
    private double target = 1;
    private double value = 1;
    /** Higher values of the last window, each with when it was left: older ones first, and higher. */
    private final ArrayDeque<Left> left = new ArrayDeque<>();

    private record Left(double value, long at) {}

    /** @param windowMs how far back Kafka looks: (quota.window.num + 1) x quota.window.size.seconds */
    void configure(long windowMs, long maxMuteMs) {
        windowNanos = windowMs * 1_000_000;
        share = (double) windowMs / (windowMs + maxMuteMs);
    }

    void aim(double factor) {
        target = factor;
    }

    double value() {
        return value;
    }

    /** Moves towards the target as far as may be now. Answers whether the value is another one. */
    boolean step(long now) {
        while (!left.isEmpty() && now - left.peekFirst().at >= windowNanos) left.removeFirst();
        double highest = left.isEmpty() ? value : Math.max(value, left.peekFirst().value);
        double lowest = highest * share < SMALLEST ? 0 : highest * share;
        double next = Math.max(target, Math.min(value, lowest));
        if (next == value) return false;
        while (!left.isEmpty() && left.peekLast().value <= value) left.removeLast();
        left.addLast(new Left(value, now));
        value = next;
        return true;
    }
}
