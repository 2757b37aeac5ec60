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
 * Keeps the fence's refusals out of the broker's log: KafkaApis logs an error for each request that ends with an
 * exception, whatever it is. Brokers have log4j2; without it the log says once that they will be logged.
 */
final class QuietLog {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.fence");
    /** KafkaApis.handle logs them. */
    private static final String WHO_LOGS = "kafka.server.KafkaApis";
    private static boolean told;

    private QuietLog() {}

    /** Puts the filter into the log's present configuration, if it isn't there. */
    static synchronized void hush() {
        try {
            OurRefusals.dropIn(Authorizer.class.getClassLoader());
        } catch (LinkageError | RuntimeException e) { // no log4j2, or another behind its API
            if (!told) LOG.warn("The broker's log will tell of every request that the fence turns back: {}", e.toString());
            told = true;
        }
    }

    /** On the logger's configuration: it is asked only for what would be written. */
    private static final class OurRefusals extends AbstractFilter {
        private static Configuration where;

        static void dropIn(ClassLoader kafka) {
            Configuration now = ((LoggerContext) LogManager.getContext(kafka, false)).getConfiguration();
            if (now == where) return;
            OurRefusals filter = new OurRefusals();
            filter.start();
            now.getLoggerConfig(WHO_LOGS).addFilter(filter);
            where = now;
        }

        @Override
        public Result filter(LogEvent event) {
            return event.getThrown() instanceof FenceError ? Result.DENY : Result.NEUTRAL;
        }
    }
}
