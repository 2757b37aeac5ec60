package org.quotahost.brokerlog;

import java.util.function.DoubleSupplier;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The filter in the broker's log, and what it leaves out. Brokers have log4j2; without it the log says once that it
 * will contain these lines.
 */
public final class BrokerLog {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.log");
    private static final LimitLines LIMITS = new LimitLines(System::nanoTime);
    private static volatile boolean tried;

    private BrokerLog() {}

    /** Puts the filter into the log's configuration, and again into each that replaces it. Any number of calls. */
    public static void install() {
        if (tried) return;
        synchronized (BrokerLog.class) {
            if (tried) return;
            tried = true;
            try {
                Log4jFilter.install(ClientQuotaCallback.class.getClassLoader(), LIMITS);
            } catch (LinkageError | RuntimeException e) { // no log4j2, or another implementation behind its API
                LOG.warn("The broker's log is not log4j2's, so it will contain every request that the fence turns back,"
                        + " and a line of Kafka's for each client whenever the factor moves: {}", e.toString());
            }
        }
    }

    /**
     * This request thread is about to read all limits of a type again.
     *
     * @param steps how often the factor has changed limits so far
     */
    public static void limitsAreRead(int type, int steps) {
        LIMITS.scan(type, steps);
    }

    /** Writes one line in place of those that were left out, at most once a minute; the watch calls it often. */
    public static void summarize(DoubleSupplier limitFactor) {
        String line = LIMITS.summary(limitFactor);
        if (line != null) LOG.info(line);
    }
}
