package org.quotahost.topics;

import java.util.Locale;
import java.util.concurrent.atomic.LongAdder;
import org.quotahost.fence.Fence;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One topic's use of what is expected of it, looked at by one thread; request threads count what they turn back.
 *
 * <p>It is over while its one-minute rate is above what is expected and it has used up its credit. The credit grows
 * by what is expected, and shrinks by what comes in. By the rate alone a topic that has sent a burst would be turned back until
 * a minute's mean has forgotten it, for minutes, and clients would give its records up (delivery.timeout.ms).
 */
final class TopicUse {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.topics");
    /** Credit in seconds of what is expected: saved up while a client waits to try again, and owed after a burst. */
    private static final double MOST = 5, LEAST = -30;
    private static final long QUIET_NANOS = 60_000_000_000L;

    final String topic;
    private final LongAdder turnedBack = new LongAdder();
    private final CarriedRate rate = new CarriedRate();
    private double carried;
    private double expected;
    private double credit;
    private long count = -1;
    private long lookedAt;
    private long told;
    private long toldAt;
    private long toldBefore;
    private boolean telling;

    TopicUse(String topic) {
        this.topic = topic;
    }

    /** A request was turned back, or with mode=shadow would have been. Request threads. */
    void count() {
        turnedBack.increment();
    }

    /** Whether it is over now; bytes/s expected. */
    boolean look(TopicMeters.Reading now, double bytesPerSecond, long nanos) {
        expected = bytesPerSecond;
        carried = rate.look(now, nanos);
        credit = count < 0 ? MOST * expected : credit + expected * (nanos - lookedAt) / 1e9 - Math.max(0, now.count() - count);
        credit = Math.max(LEAST * expected, Math.min(MOST * expected, credit));
        count = now.count();
        lookedAt = nanos;
        return carried > expected && credit <= 0;
    }

    /** Logs the begin of a period in which its requests are turned back, and its end once none was for a minute. */
    void tell(double total, TopicThresholds thresholds, long nanos) {
        long now = turnedBack.sum();
        if (now != told) {
            if (!telling) begin(total, thresholds);
            telling = true;
            told = now;
            toldAt = nanos;
        } else if (telling && nanos - toldAt >= QUIET_NANOS) {
            telling = false;
            LOG.info("Topic {}: no produce request was turned back for a minute; {} were since it began", topic, told - toldBefore);
        }
    }

    private void begin(double total, TopicThresholds thresholds) {
        toldBefore = told;
        LOG.warn("Topic {}: produce requests are turned back: it takes in {} bytes/s where {} are expected, and this broker {} where"
                + " {} are{}", topic, bytes(carried), bytes(expected), bytes(total), bytes(thresholds.total()),
                Fence.inShadow() ? " (only counted: mode=shadow)" : "");
    }

    private static String bytes(double rate) {
        return String.format(Locale.ROOT, "%,.0f", rate);
    }
}
