package org.quotahost.fence;

import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.config.Configuration;
import org.apache.logging.log4j.core.filter.AbstractFilter;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps the requests that the fence turns back out of the broker's log.
 *
 * <p>KafkaApis logs an error with a stack trace for each request that ends with an exception, whatever it is; clients
 * send such requests again and again. Brokers have log4j2, and the fence adds a filter to it. Without log4j2 the log
 * says once that it will contain these requests.
 */
final class QuietLog {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.fence");
    /** KafkaApis.handle logs them. */
    private static final String KAFKAS_LOGGER = "kafka.server.KafkaApis";
    private static boolean warned;

    private QuietLog() {}

    /** Adds the filter to the log's present configuration, if it is not there. */
    static synchronized void install() {
        try {
            FenceErrorFilter.addTo(Authorizer.class.getClassLoader());
        } catch (LinkageError | RuntimeException e) { // no log4j2, or another implementation behind its API
            if (warned) return;
            warned = true;
            LOG.warn("The broker's log will contain every request that the fence turns back: {}", e.toString());
        }
    }

    /**
     * Drops the fence's errors. It is part of the logger's configuration, so log4j2 asks it only about events that
     * pass the logger's level.
     */
    private static final class FenceErrorFilter extends AbstractFilter {
        private static Configuration filtered;

        static void addTo(ClassLoader kafka) {
            Configuration now = ((LoggerContext) LogManager.getContext(kafka, false)).getConfiguration();
            if (now == filtered) return;
            FenceErrorFilter filter = new FenceErrorFilter();
            filter.start();
            now.getLoggerConfig(KAFKAS_LOGGER).addFilter(filter);
            filtered = now;
        }

        @Override
        public Result filter(LogEvent event) {
            return event.getThrown() instanceof FenceError ? Result.DENY : Result.NEUTRAL;
        }
    }
}
