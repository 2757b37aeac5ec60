package org.quotahost.topics;

/**
 * The one-minute rate of one of Kafka's meters, carried forward from the meter's last tick: the rate that it would
 * have if it ticked now.
 *
 * <p>yammer's Meter (metrics-core 2.2.0) counts for t = 5 s, and only then moves its rate:
 * {@code rate += (1 - exp(-t / 60 s)) x (count / t - rate)}; at its first tick {@code rate = count / t}. A
 * reader who waits for the tick sees a burst only when it is over. Only the thread of TopicWatch uses it.
 */
final class CarriedRate {
    private static final double TICK_SECONDS = 5;
    private static final long OVERDUE_NANOS = 5_500_000_000L;

    private double rate;
    private long count = -1;
    private long countAtTick;
    private long tickedAt;
    private boolean ticked;

    /**
     * Takes a reading. The caller has to read several times between two ticks.
     *
     * @param nanos now, by System.nanoTime
     * @return the rate in bytes/s
     */
    double update(TopicMeters.Reading now, long nanos) {
        if (count < 0 || now.count() < count) begin(now, nanos);
        // A tick with the same mean leaves the rate as it was, so only the time shows that it has happened.
        else if (now.rate() != rate || nanos - tickedAt >= OVERDUE_NANOS) tick(now, nanos);
        count = now.count();
        double bytes = count - countAtTick;
        double seconds = (nanos - tickedAt) / 1e9;
        if (!ticked) return bytes / TICK_SECONDS; // the rate that the first tick will set if nothing more comes
        return seconds <= 0 ? rate : rate + -Math.expm1(-seconds / 60) * (bytes / seconds - rate);
    }

    /** The first reading of a meter, or the first after Kafka has made it anew. */
    private void begin(TopicMeters.Reading now, long nanos) {
        tick(now, nanos);
        ticked = now.rate() != 0;
        if (!ticked) countAtTick = 0; // the first tick will take in all that the meter has counted
    }

    private void tick(TopicMeters.Reading now, long nanos) {
        rate = now.rate();
        countAtTick = now.count();
        tickedAt = nanos;
        ticked = true;
    }
}
