package org.quotahost.topics;

import org.quotahost.internals.Meters;

/**
 * The one-minute rate of one of Kafka's meters as of now, by the meter's count.
 *
 * <p>Yammer's Meter (metrics-core 2.2.0) counts for t = 5 s and only then moves its rate:
 * {@code rate += (1 - exp(-t / 60 s)) x (count / t - rate)}; at its first tick {@code rate = count / t}. A reader who
 * waits for the tick sees a burst only when it is over. So this does the same at each reading, with t since the last.
 * At the meter's ticks the two differ by at most 1 - exp(-5 / 60), a twelfth, of what came in the last 5 s. Only the
 * thread of TopicWatch uses it.
 */
final class OneMinuteRate {
    private static final double TICK_SECONDS = 5;

    private double rate;
    private long count = Long.MAX_VALUE;
    private boolean begins;
    private long readAt;

    /**
     * Takes a reading.
     *
     * @param nanos now, by System.nanoTime
     * @return the rate in bytes/s
     */
    double update(Meters.Of meter, long nanos) {
        long now = meter.count();
        double seconds = (nanos - readAt) / 1e9;
        if (now < count) { // the first reading, or Kafka has made the meter anew
            begins = meter.seconds() < TICK_SECONDS;
            rate = meter.oneMinuteRate();
        } else if (!begins && seconds > 0) {
            rate += -Math.expm1(-seconds / 60) * ((now - count) / seconds - rate);
        }
        if (begins) { // the first tick will set this if nothing more comes
            double age = meter.seconds();
            rate = now / Math.max(TICK_SECONDS, age);
            begins = age < TICK_SECONDS;
        }
        count = now;
        readAt = nanos;
        return rate;
    }
}
