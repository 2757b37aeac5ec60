package org.quotahost.topics;

import java.util.concurrent.TimeUnit;
import org.quotahost.util.PeriodicThread;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The thread that looks at Kafka's meters for the topic quotas, without Python and on no request's time. */
public final class TopicWatch {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.topics");
    /** What comes in between two looks is let in, and a client may send a lot: so often only near the total. */
    private static final long NEAR_MS = 20, LOOK_MS = 100, IDLE_MS = 500;
    /** Where there are so many topics that a look takes long, it uses at most a tenth of a core. */
    private static final long TIMES_ITS_LENGTH = 9;

    private final TopicQuotas quotas;
    private final PeriodicThread thread;

    public TopicWatch(TopicQuotas quotas) {
        this.quotas = quotas;
        thread = new PeriodicThread("quotahost-topics", IDLE_MS, () -> quotas.on() ? look() : IDLE_MS, quotas::close);
    }

    public void start() {
        thread.start();
    }

    public void close() {
        thread.close();
    }

    /** Answers how long to wait for the next look, in ms. */
    private long look() {
        long before = System.nanoTime();
        try {
            quotas.look(before);
        } catch (RuntimeException e) {
            LOG.debug("A look at the topics' meters failed", e);
            quotas.blind("Kafka's meters can't be read (" + e + ")");
        }
        return Math.max(quotas.near() ? NEAR_MS : LOOK_MS, TIMES_ITS_LENGTH * TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - before));
    }
}
