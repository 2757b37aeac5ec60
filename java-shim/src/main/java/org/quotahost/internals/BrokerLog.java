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
 * Keeps lines out of the broker's own log that Kafka would write again and again because of quotahost: an error with a stack
 * trace for each request that the fence turns back, an error for each change of metadata while a broker is down
 * (KAFKA-20746), and a line for each sensor whose limit changes (ClientQuotaManager.updateQuotaMetricConfigs); and the values
 * of a change that was refused, of which some are secrets.
 *
 * <p>The one filter in the broker's log4j2; it alone knows log4j2, so that the rest loads without. It belongs to the whole
 * configuration and not to a logger's, since log4j2 asks such a filter already when Kafka asks whether the level is on. So
 * the line that is left out is never put together: 4 ns instead of 0.6 to 1.2 us, which is 2 ms for 2,000 clients. Each other
 * call of a logger pays less than 1 ns, also where its level is off. Every overload is here that log4j2 calls with up to
 * three parameters; those of AbstractFilter allocate.
 */
final class BrokerLog extends AbstractFilter {
    /** The managers that write a line for each changed sensor: Scala's up to Kafka 4.1, and later ones (4.4: all). */
    private static final Set<String> MANAGERS = Set.of("kafka.server.ClientQuotaManager",
            "kafka.server.ClientRequestQuotaManager", "kafka.server.ControllerMutationQuotaManager",
            "org.apache.kafka.server.quota.ClientQuotaManager", "org.apache.kafka.server.quota.ClientRequestQuotaManager",
            "org.apache.kafka.server.quota.ControllerMutationQuotaManager");
    /** KAFKA-20746, which only a broker with a quota callback has; Kafka's metadata-apply-error-count counts all. */
    private static final String FAULTS = "org.apache.kafka.server.fault.LoggingFaultHandler";

    private final LineLimit faults = new LineLimit(1);

    /**
     * A reload makes a new configuration, which gets a filter, too. A RuntimeException is another implementation behind
     * log4j2's API, a LinkageError no log4j2.
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

    /** @param text the line or its format; null where Kafka only asks whether the level is on */
    private Result decide(Logger logger, Level level, Object text, Object last) {
        // Level by level, so that what is off, which is most, ends here.
        if (level == Level.ERROR) return isOurs(last) || showsValues(text) ? Result.DENY : Result.NEUTRAL;
        if (level != Level.INFO || !MANAGERS.contains(logger.getName())) return Result.NEUTRAL;
        return text != null && text.toString().contains("already exists") ? Result.DENY : Result.NEUTRAL;
    }

    /**
     * Whether it is an error with which the fence turns requests back: their messages begin with our name. Or that of a
     * question about ACLs where there was no authorizer: a stock broker logs none.
     */
    private static boolean isOurs(Object error) {
        return error instanceof SecurityDisabledException
                || error instanceof ApiException ours && String.valueOf(ours.getMessage()).startsWith("quotahost");
    }

    /** Whether it is Kafka's line with all values of a change that was refused, secrets too; the next one says why. */
    private static boolean showsValues(Object text) {
        return text instanceof String line && line.contains("validation of configProps") && line.contains(BrokerConfigs.PREFIX);
    }

    /** Whether it is the fault of Kafka's, and was logged within the last minute. */
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
