package org.quotahost.topics;

import java.util.Locale;
import java.util.concurrent.atomic.LongAdder;
import org.quotahost.internals.Meters;
import org.quotahost.util.HeldBack;
import org.quotahost.util.LineLimit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How much one topic takes in, compared with what is expected of it, and how many of its requests were turned back.
 *
 * <p>A topic is over its threshold while its one-minute rate is above the expected one and it has used up its credit.
 * The credit grows by the expected bytes and shrinks by the bytes that come in. By the rate alone a topic that has
 * sent a burst would be turned back for minutes, until the mean has forgotten the burst, and clients would give its
 * records up (delivery.timeout.ms).
 *
 * <p>Only the thread of TopicWatch uses it, but for countTurnedBack() and allowance().
 */
final class TopicUse {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.topics");
    /**
     * The credit in seconds of the expected rate: saved up while a client waits to try again, and owed after a burst.
     */
    private static final double MOST = 5, LEAST = -30;
    /**
     * What a principal may send on of what is expected of the topic, before it is muted: a client that backs off stays
     * below it, and its connection carries other topics, too.
     */
    private static final double ALLOWED = 0.25;
    /** After a longer pause between two readings nobody knows for how many seconds of it the topic was over. */
    private static final double LONGEST = 5;
    private static final long QUIET_NANOS = 60_000_000_000L;

    final String topic;
    private final LongAdder turnedBack = new LongAdder();
    private final OneMinuteRate meter = new OneMinuteRate();
    /** Both in bytes/s, as of the last reading; request threads read the second one. */
    private double rate;
    private volatile double expected;
    /** What would be held back of it while its threshold is in shadow; null while that is enforced. */
    private volatile HeldBack shadow;
    /** In bytes. */
    private double credit;
    /** The time between the last two readings, and by how many bytes more came in than are expected in it. */
    private double seconds;
    private double beyond;
    private long count = -1;
    private long readAt;
    /**
     * For the log: a period in which requests are turned back is open, how many were by its begin and by now, and
     * when.
     */
    private boolean periodOpen;
    private boolean periodLogged;
    private long countAtBegin;
    private long countNow;
    private long lastTurnedBackAt;

    TopicUse(String topic) {
        this.topic = topic;
    }

    /** A request thread has turned a request to the topic back, or would have if its threshold were not in shadow. */
    void countTurnedBack() {
        turnedBack.increment();
    }

    /** How many bytes/s each principal may send on while the topic's requests are turned back. */
    double allowance() {
        return ALLOWED * expected;
    }

    /** Whether requests are only counted, since the topic's threshold is in shadow. */
    boolean inShadow() {
        return shadow != null;
    }

    /** Puts the topic's threshold in shadow, with null in force. */
    void shadow(HeldBack counts) {
        shadow = counts;
    }

    /** The topic was over its threshold since the reading before the last: counts what would have been held back. */
    void countHeldBack() {
        HeldBack counts = shadow;
        if (counts != null && seconds <= LONGEST) counts.add(seconds, beyond);
    }

    /**
     * Takes a reading of the topic's meter.
     *
     * @param bytesPerSecond expected of the topic
     * @param nanos now, by System.nanoTime
     * @return whether the topic is over its threshold
     */
    boolean update(Meters.Of now, double bytesPerSecond, long nanos) {
        long counted = now.count();
        expected = bytesPerSecond;
        rate = meter.update(now, nanos);
        seconds = count < 0 ? 0 : (nanos - readAt) / 1e9;
        double came = count < 0 ? 0 : Math.max(0, counted - count);
        beyond = Math.max(0, came - expected * seconds);
        credit = count < 0 ? MOST * expected : credit + expected * seconds - came;
        credit = Math.max(LEAST * expected, Math.min(MOST * expected, credit));
        count = counted;
        readAt = nanos;
        return rate > expected && credit <= 0;
    }

    /**
     * Logs when a period begins in which requests are turned back, and when it ends: once none was for a minute.
     *
     * @param lines how many periods of all topics together are logged
     */
    void log(double total, TopicThresholds thresholds, long nanos, LineLimit lines) {
        long now = turnedBack.sum();
        if (now != countNow) {
            if (!periodOpen) {
                countAtBegin = countNow;
                periodLogged = lines.pass() != LineLimit.NO;
                if (periodLogged) logBegin(total, thresholds);
            }
            periodOpen = true;
            countNow = now;
            lastTurnedBackAt = nanos;
        } else if (periodOpen && nanos - lastTurnedBackAt >= QUIET_NANOS) {
            periodOpen = false;
            if (periodLogged) LOG.info("Topic {}: no produce request was turned back for a minute; {} were since it began", topic,
                    countNow - countAtBegin);
        }
    }

    private void logBegin(double total, TopicThresholds thresholds) {
        LOG.warn("Topic {}: produce requests are turned back: it takes in {} bytes/s where {} are expected, and this"
                + " broker {} where {} are{}",
                topic, bytes(rate), bytes(expected), bytes(total), bytes(thresholds.total()),
                inShadow() ? " (only counted: its threshold is in shadow)" : "");
    }

    private static String bytes(double rate) {
        return String.format(Locale.ROOT, "%,.0f", rate);
    }
}
