package org.quotahost;

import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Marker;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.config.Configuration;
import org.apache.logging.log4j.core.filter.AbstractFilter;
import org.apache.logging.log4j.message.Message;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps the fence's refusals out of the broker's log: KafkaApis logs an error for each request that ends with an
 * exception, whatever it is. Brokers have log4j2; without it the log says once that they will be logged.
 */
final class QuietLog {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.fence");
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

    /** A filter of the whole configuration: log4j2 asks it before any logger's level. */
    private static final class OurRefusals extends AbstractFilter {
        private static Configuration where;

        static void dropIn(ClassLoader kafka) {
            Configuration now = ((LoggerContext) LogManager.getContext(kafka, false)).getConfiguration();
            if (now == where) return;
            OurRefusals filter = new OurRefusals();
            filter.start();
            now.addFilter(filter);
            where = now;
        }

        private static Result judge(Throwable thrown) {
            return thrown instanceof Paused ? Result.DENY : Result.NEUTRAL;
        }

        @Override
        public Result filter(LogEvent event) {
            return judge(event.getThrown());
        }

        @Override
        public Result filter(org.apache.logging.log4j.core.Logger logger, Level level, Marker marker, Message message,
                Throwable thrown) {
            return judge(thrown);
        }

        @Override
        public Result filter(org.apache.logging.log4j.core.Logger logger, Level level, Marker marker, Object message,
                Throwable thrown) {
            return judge(thrown);
        }
    }
}
