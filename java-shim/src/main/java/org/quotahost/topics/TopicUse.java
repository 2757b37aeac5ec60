package org.quotahost.topics;

import java.util.Locale;
import java.util.concurrent.atomic.LongAdder;
import org.quotahost.internals.Meters;

/**
 * The usage of one topic: whether it is over its threshold, by its mean over a minute and a credit of bytes; how much each
 * principal may still send; and how many requests were turned back.
 *
 * <p>A topic is over its threshold while its one-minute rate is above the expected rate and it has used up its credit. The
 * credit grows by the expected bytes and shrinks by the bytes that come in. If only the rate counted, a topic would be turned
 * back for minutes after a burst, until the mean has forgotten it, and clients would drop its records (delivery.timeout.ms).
 *
 * <p>The thread that reads the meters writes the fields; request threads count what they turn back, and read the rest.
 */
final class TopicUse {
    /** The limits of the credit in seconds of the expected rate: saved while a client waits to retry, owed after a burst. */
    private static final double MOST = 5, LEAST = -30;
    /**
     * The share of the expected rate that a principal may still send before it is muted. A client that backs off stays below
     * it, and the client's connection also carries other topics.
     */
    private static final double ALLOWED = 0.25;
    /** After a longer pause between two readings nobody knows for how many seconds of the pause the topic was over. */
    private static final double LONGEST = 5;

    final String topic;
    /** The requests to the topic since the log's last line that were turned back, or were only counted in shadow. */
    final LongAdder turnedBack = new LongAdder();
    /** Kafka's meter of the topic. */
    Meters.Of source;
    private final OneMinuteRate meter = new OneMinuteRate();
    /** In bytes/s. */
    private volatile double expected;
    /** Counts what would be turned back while the topic's threshold is in shadow; null while the threshold is enforced. */
    volatile TopicQuotas.InShadow shadow;
    /** In bytes. */
    private double credit = Double.POSITIVE_INFINITY;

    TopicUse(String topic) {
        this.topic = topic;
    }

    /** Returns how many bytes/s each principal may still send while the topic's requests are turned back. */
    double allowance() {
        return ALLOWED * expected;
    }

    /** Counts what would have been turned back since the last reading. The topic is over its threshold. */
    void countInShadow() {
        if (shadow == null || meter.seconds > LONGEST) return;
        shadow.seconds().add(meter.seconds);
        shadow.bytes().add(Math.max(0, meter.came - expected * meter.seconds));
    }

    /** Takes a reading of the topic's meter at this System.nanoTime. Returns whether the topic is over its threshold. */
    boolean update(double bytesPerSecond, long nanos) {
        expected = bytesPerSecond;
        meter.update(source, nanos);
        credit += expected * meter.seconds - meter.came;
        credit = Math.max(LEAST * expected, Math.min(MOST * expected, credit));
        return meter.rate > expected && credit <= 0;
    }

    @Override
    public String toString() {
        return String.format(Locale.ROOT, "%s (%d requests, %,.0f bytes/s, %,.0f are expected%s)", topic, turnedBack.sum(),
                meter.rate, expected, shadow != null ? "; only counted: its threshold is in shadow" : "");
    }

    /**
     * The current one-minute rate of one of Kafka's meters, from the meter's count.
     *
     * <p>Yammer's Meter (metrics-core 2.2.0) counts for t = 5 s and only then updates its rate:
     * {@code rate += (1 - exp(-t / 60 s)) x (count / t - rate)}; at its first tick {@code rate = count / t}. A reader who waits for
     * the tick sees a burst only after the burst. So this class computes the same at each reading, with t since the last reading.
     * At the meter's ticks the two rates differ by at most 1 - exp(-5 / 60), a twelfth, of what came in the last 5 s.
     */
    static final class OneMinuteRate {
        private static final double TICK_SECONDS = 5;

        /** In bytes/s. */
        volatile double rate;
        /** The time between the last two readings, and the bytes that came in it; 0 after the first reading. */
        double seconds;
        long came;
        private long count = Long.MAX_VALUE;
        private long firstAt, readAt;

        void update(Meters.Of meter, long nanos) {
            long now = meter.count();
            boolean isFirst = now < count; // or Kafka has made a new meter
            if (isFirst) firstAt = nanos;
            seconds = isFirst ? 0 : (nanos - readAt) / 1e9;
            came = isFirst ? 0 : now - count;
            double age = Math.max(meter.seconds(), (nanos - firstAt) / 1e9); // without bytes only the latter is known
            if (isFirst) rate = meter.oneMinuteRate();
            // The meter had not ticked at the last reading, judging by its first bytes. If no more bytes come, the tick sets
            // this rate.
            if (age - seconds < TICK_SECONDS) rate = now / Math.max(TICK_SECONDS, age);
            else if (seconds > 0) rate += -Math.expm1(-seconds / 60) * (came / seconds - rate);
            count = now;
            readAt = nanos;
        }
    }
}
