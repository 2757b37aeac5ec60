package org.quotahost.internals;

import java.util.Arrays;
import java.util.Set;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.SecurityDisabledException;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Marker;
import org.apache.logging.log4j.core.Logger;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.config.Configuration;
import org.apache.logging.log4j.core.filter.AbstractFilter;
import org.apache.logging.log4j.message.Message;
import org.quotahost.util.BrokerConfigs;
import org.quotahost.util.LineLimit;

/**
 * The log4j2 filter that keeps lines of Kafka's out of the broker's log: those that quotahost causes again and again (an error
 * with a stack trace for each request that the fence turns back, an error for each change of metadata while a broker is down
 * (KAFKA-20746), and a line for each sensor whose limit changes (ClientQuotaManager.updateQuotaMetricConfigs)), and those with
 * the values of a refused change, which may be secret.
 *
 * <p>This class alone knows log4j2, so the other classes load without log4j2. The filter belongs to the whole configuration,
 * not to one logger, since log4j2 asks such a filter as soon as Kafka asks whether the level is on. So Kafka never formats a
 * suppressed line: 4 ns instead of 0.6 to 1.2 us, which is 2 ms for 2,000 clients. Each other call of a logger costs less than
 * 1 ns more, also if its level is off. The class has every overload that log4j2 calls with up to three parameters;
 * AbstractFilter's allocate.
 */
final class BrokerLog extends AbstractFilter {
    /** The loggers of the managers that write a line for each changed sensor: Scala's up to Kafka 4.1, then Java's (4.4: all). */
    private static final Set<String> MANAGERS = Set.of("kafka.server.ClientQuotaManager",
            "kafka.server.ClientRequestQuotaManager", "kafka.server.ControllerMutationQuotaManager",
            "org.apache.kafka.server.quota.ClientQuotaManager", "org.apache.kafka.server.quota.ClientRequestQuotaManager",
            "org.apache.kafka.server.quota.ControllerMutationQuotaManager");
    /** The logger of KAFKA-20746, which only a broker with a quota callback has; metadata-apply-error-count still counts all. */
    private static final String FAULTS = "org.apache.kafka.server.fault.LoggingFaultHandler";

    private final LineLimit faults = new LineLimit(1);

    /**
     * Adds the filter to the configuration, and to each new one after a reload. A RuntimeException means that another
     * implementation is behind log4j2's API, a LinkageError that log4j2 is missing.
     */
    static boolean install() {
        LoggerContext context = (LoggerContext) LogManager.getContext(ClientQuotaCallback.class.getClassLoader(), false);
        context.addPropertyChangeListener(change -> {
            if (LoggerContext.PROPERTY_CONFIG.equals(change.getPropertyName())) add(context.getConfiguration());
        });
        add(context.getConfiguration());
        return true;
    }

    private static void add(Configuration configuration) {
        BrokerLog filter = new BrokerLog();
        filter.start();
        configuration.addFilter(filter);
    }

    /** @param text the line or its format; null if Kafka only asks whether the level is on */
    private Result decide(Logger logger, Level level, Object text, Object last) {
        // The level is compared first, so that a call whose level is off, as most are, ends here.
        if (level == Level.ERROR) return isOurs(last) || showsValues(text) ? Result.DENY : Result.NEUTRAL;
        if (level != Level.INFO || !MANAGERS.contains(logger.getName())) return Result.NEUTRAL;
        return text != null && text.toString().contains("already exists") ? Result.DENY : Result.NEUTRAL;
    }

    /**
     * Returns whether the error is one with which the fence turns requests back (its message begins with our name), or the
     * answer to a request about ACLs on a broker without an authorizer, which a stock broker does not log.
     */
    private static boolean isOurs(Object error) {
        return error instanceof SecurityDisabledException
                || error instanceof ApiException ours && String.valueOf(ours.getMessage()).startsWith("quotahost");
    }

    /** Returns whether the line is Kafka's with all values of a refused change, secrets too. Kafka's next line gives the reason. */
    private static boolean showsValues(Object text) {
        return text instanceof String line && line.contains("validation of configProps") && line.contains(BrokerConfigs.PREFIX);
    }

    /** Returns whether the line is KAFKA-20746's and was already logged within the last minute. */
    private boolean tooMany(Object[] parameters) {
        boolean ours = Arrays.stream(parameters)
                .anyMatch(each -> each instanceof String text && text.contains("topic or cluster changes"));
        return ours && faults.pass() == LineLimit.NO;
    }

    @Override
    public Result filter(Logger logger, Level level, Marker marker, Message text, Throwable error) {
        return decide(logger, level, text == null ? null : text.getFormat(), error);
    }

    @Override
    public Result filter(Logger logger, Level level, Marker marker, Object text, Throwable error) {
        return decide(logger, level, text, error);
    }

    @Override
    public Result filter(Logger logger, Level level, Marker marker, String text) {
        return decide(logger, level, text, null);
    }

    @Override
    public Result filter(Logger logger, Level level, Marker marker, String text, Object... parameters) {
        Object last = parameters == null || parameters.length == 0 ? null : parameters[parameters.length - 1];
        boolean fault = last instanceof NullPointerException && level == Level.ERROR && FAULTS.equals(logger.getName());
        return fault && tooMany(parameters) ? Result.DENY : decide(logger, level, text, last);
    }

    @Override
    public Result filter(Logger logger, Level level, Marker marker, String text, Object p0) {
        return decide(logger, level, text, p0);
    }

    @Override
    public Result filter(Logger logger, Level level, Marker marker, String text, Object p0, Object p1) {
        return decide(logger, level, text, p1);
    }

    @Override
    public Result filter(Logger logger, Level level, Marker marker, String text, Object p0, Object p1, Object p2) {
        return decide(logger, level, text, p2);
    }
}
