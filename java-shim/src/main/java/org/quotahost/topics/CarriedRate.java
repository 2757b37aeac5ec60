package org.quotahost.topics;

/**
 * Kafka's one-minute rate of one meter, carried forward from its last tick: what it would be if it ticked now.
 *
 * <p>yammer's Meter (metrics-core 2.2.0) counts for t = 5 s, and only then moves its rate:
 * {@code rate += (1 - exp(-t / 60 s)) x (count / t - rate)}, the first time {@code rate = count / t}. Who waits for that sees
 * a burst when it is over. One thread looks.
 */
final class CarriedRate {
    private static final double TICK_SECONDS = 5;
    private static final long OVERDUE_NANOS = 5_500_000_000L;

    private double rate;
    private long count = -1;
    private long countAtTick;
    private long tickedAt;
    private boolean ticked;

    /** In bytes/s; to be called several times between two ticks. */
    double look(TopicMeters.Reading now, long nanos) {
        if (count < 0 || now.count() < count) begin(now, nanos);
        else if (now.rate() != rate || nanos - tickedAt >= OVERDUE_NANOS) tick(now, nanos); // the same mean leaves the rate
        count = now.count();
        double bytes = count - countAtTick;
        double seconds = (nanos - tickedAt) / 1e9;
        if (!ticked) return bytes / TICK_SECONDS;
        return seconds <= 0 ? rate : rate + -Math.expm1(-seconds / 60) * (bytes / seconds - rate);
    }

    /** A meter that is new to us, or was made anew. */
    private void begin(TopicMeters.Reading now, long nanos) {
        tick(now, nanos);
        ticked = now.rate() != 0;
        if (!ticked) countAtTick = 0;
    }

    private void tick(TopicMeters.Reading now, long nanos) {
        rate = now.rate();
        countAtTick = now.count();
        tickedAt = nanos;
        ticked = true;
    }
}
