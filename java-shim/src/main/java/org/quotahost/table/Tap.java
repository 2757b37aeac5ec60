package org.quotahost.table;

import java.util.ArrayDeque;

/**
 * The tap: how limits follow the factor in force, downwards (no mute above max.mute) and upwards, by the mean of the factor
 * over about the time that Kafka looks back (docs/adr/0017-a-tap-not-a-ramp.md).
 *
 * <p>quotahost.throttling.tap is the same in Python, and explains each number and step. tests/throttling/test_tap.py checks
 * that both give the same values to the bit, so the operations must have the same order in both.
 *
 * <p>A step down never mutes a client for longer than max.mute. Kafka's throttle time is (rate - bound) / bound x window. A
 * client at its bound q, measured over a window of W seconds, is muted for at most D seconds if the bound goes no lower
 * than q x W / (W + D). W seconds later its window contains nothing from before the step.
 */
final class Tap {
    private static final double NEGLIGIBLE = 1e-5, STEP = 0.02;
    private static final long RETRY_MS = 750;
    private static final int MOST = 512;

    private double value = 1;
    private boolean held;
    private long heldSinceMs;
    private long clientsWaitUntilMs = Long.MIN_VALUE;
    /** The factor as it counts for the mean. */
    private double factor = 1;
    /** The earlier factors that the mean still includes, the oldest first. */
    private final ArrayDeque<Past> factors = new ArrayDeque<>();
    /** The higher values within the time that Kafka looks back, the oldest and highest first. */
    private final ArrayDeque<Past> values = new ArrayDeque<>();

    private record Past(double value, long leftMs) {}

    /**
     * Kafka's windows, and the pace of limits that follows from them.
     *
     * @param number quota.window.num
     * @param ms quota.window.size.seconds in ms; with 0 every step is taken at once
     * @param maxMuteMs the longest mute in ms that a step may cause (max.mute), above 0
     */
    record Windows(int number, long ms, long maxMuteMs) {
        /** How far Kafka looks back at most; the next two methods: in the mean, if the windows were empty, and if they were full. */
        long kafkaMs() {
            return (number + 1) * ms;
        }

        long emptyMs() {
            return number * ms - ms / 2;
        }

        long fullMs() {
            return number * ms + ms / 2;
        }

        /** Returns the share of the factor at which a limit begins if Kafka's windows are empty. */
        double leastShare() {
            return 1.0 / number;
        }

        /** Returns the part of a limit that a step leaves at least, so that no client is muted beyond max.mute: W / (W + D). */
        double stepShare() {
            return (double) kafkaMs() / (kafkaMs() + maxMuteMs);
        }

        /** Returns the share of its limit (0..1) that a client gets so many ms after it began with empty windows. */
        double rise(long sinceMs) {
            return sinceMs >= emptyMs() ? 1 : Math.max(leastShare(), (double) sinceMs / emptyMs());
        }
    }

    double value() {
        return value;
    }

    /**
     * Moves as far towards a factor (0..1) as is allowed now (monotonic). Returns whether the value has changed.
     *
     * @param hold whether a fence turns back what the limits would slow
     */
    boolean step(Windows windows, double next, boolean hold, long nowMs) {
        remember(counted(next, hold, nowMs), windows.fullMs(), nowMs);
        double start = hold ? Math.min(value, windows.leastShare()) : windows.leastShare() * next;
        // The tap does not know how full a client's windows are. The larger mean delays no client for what it has not sent.
        double target = Math.max(Math.max(mean(windows.fullMs(), nowMs), mean(windows.emptyMs(), nowMs)), start);
        double bounded = Math.max(target, Math.min(value, lowest(windows, nowMs)));
        boolean settled = bounded == target && (bounded == factor || factors.isEmpty());
        if (bounded == value || !(settled || Math.abs(bounded - value) >= STEP * value)) return false;
        while (!values.isEmpty() && values.peekLast().value <= value) values.removeLast();
        values.addLast(new Past(value, nowMs));
        value = bounded;
        return true;
    }

    private double counted(double next, boolean hold, long nowMs) {
        if (held && !hold) clientsWaitUntilMs = nowMs + Math.min(RETRY_MS, nowMs - heldSinceMs);
        if (hold && !held) heldSinceMs = nowMs;
        held = hold;
        return hold || nowMs < clientsWaitUntilMs ? 0 : next;
    }

    private void remember(double next, long backMs, long nowMs) {
        if (next != factor) {
            factors.addLast(new Past(factor, nowMs));
            factor = next;
        }
        while (!factors.isEmpty() && (nowMs - factors.peekFirst().leftMs >= backMs || factors.size() > MOST)) {
            factors.removeFirst();
        }
    }

    private double mean(long spanMs, long nowMs) {
        long begin = nowMs - spanMs;
        if (factors.isEmpty() || factors.peekLast().leftMs <= begin) return factor;
        double total = 0;
        for (Past past : factors) {
            if (past.leftMs <= begin) continue;
            total += past.value * (past.leftMs - begin);
            begin = past.leftMs;
        }
        return (total + factor * (nowMs - begin)) / spanMs;
    }

    /** Returns the lowest value that mutes no client for longer than max.mute. */
    private double lowest(Windows windows, long nowMs) {
        while (!values.isEmpty() && nowMs - values.peekFirst().leftMs >= windows.kafkaMs()) values.removeFirst();
        double highest = values.isEmpty() ? value : Math.max(value, values.peekFirst().value);
        double lowest = highest * windows.stepShare();
        return lowest < NEGLIGIBLE ? 0 : lowest;
    }
}
