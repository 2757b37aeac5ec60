package org.quotahost;

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
    /** The highest value within the last window, from which clients may come down, and since when it was left. */
    private double from = 1;
    private long leftAt;

    /** @param windowMs how far back Kafka looks: quota.window.num x quota.window.size.seconds */
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

    boolean arrived() {
        return value == target;
    }

    /** Moves towards the target as far as may be now. Answers whether the value is another one. */
    boolean step(long now) {
        double before = value;
        if (target >= value) {
            rise(now);
        } else {
            if (now - leftAt >= windowNanos) {
                from = value;
                leftAt = now;
            }
            double lowest = from * share;
            value = Math.max(target, lowest < SMALLEST ? 0 : lowest);
        }
        return value != before;
    }

    private void rise(long now) {
        if (target > value && target > from * share) {
            from = target;
            leftAt = now;
        }
        value = target;
    }
}
