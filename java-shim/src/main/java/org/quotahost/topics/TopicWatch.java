package org.quotahost.topics;

import java.util.concurrent.TimeUnit;

/**
 * The turn in which the topic quotas read Kafka's meters, without Python and not on a request thread.
 *
 * <p>Requests that come in between two readings are let in, and a client may send a lot in that time. So the meters are
 * read often when the broker takes in almost as much as is expected, and seldom otherwise.
 */
public final class TopicWatch {
    /** Pauses between two readings: near the threshold of the broker, else, and without topic quotas. */
    private static final long NEAR_MS = 20, FAR_MS = 100;
    public static final long IDLE_MS = 500;
    /**
     * With so many topics that a reading takes long, the pause is this many times as long: a tenth of a core at most.
     */
    private static final long PAUSE_PER_READING = 9;

    private TopicWatch() {}

    /** Answers how long to wait for the next reading, in ms. */
    public static long turn(TopicQuotas quotas) {
        if (!quotas.on()) return IDLE_MS;
        long before = System.nanoTime();
        try {
            quotas.read(before);
        } catch (Throwable e) {
            quotas.suspend("Kafka's meters can't be read (" + e + ")");
            throw e; // the schedule counts it, and goes on
        }
        long tookMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - before);
        return Math.max(quotas.near() ? NEAR_MS : FAR_MS, PAUSE_PER_READING * tookMs);
    }
}
