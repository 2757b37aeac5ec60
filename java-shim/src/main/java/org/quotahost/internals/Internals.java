package org.quotahost.internals;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Authorizer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * All that quotahost uses of Kafka, of JPype and of the broker's log though it is no public API, and what follows where
 * it is missing: the broker starts and throttles, one WARN and a gauge say what is weaker. {@code quotahost doctor} asks
 * InternalsTool beforehand.
 *
 * <p>An operator may take single ones away by the JVM option {@code -Dquotahost.internals.without=NAME,NAME}, to find
 * out whether one of them is at fault.
 */
public final class Internals {
    public static final String WITHOUT = "quotahost.internals.without";
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.internals");

    public static final Internal<Requests> REQUESTS = new Internal<>("Requests", "nobody who is turned back and tries"
            + " again at once is muted, RejectedBytes stays 0, and in a PAUSE a controller refuses also those creations"
            + " that only validate or that are of internal topics", Requests::ofKafka);
    public static final Internal<Requests.Records> RECORDS = new Internal<>("Records", "RejectedBytes stays 0",
            Requests.Records::ofKafka);
    public static final Internal<Boolean> MUTE = new Internal<>("Mute",
            "nobody who is turned back and tries again at once is muted", Mute::ofKafka);
    public static final Internal<Meters> METERS = new Internal<>("Meters",
            "topic quotas turn no request back, and Failed and FailedBytes stay 0", Meters.OfKafka::new);
    public static final Internal<Boolean> BROKER_LOG = new Internal<>("BrokerLog", "the broker's log contains every"
            + " request that the fence turns back, and a line of Kafka's for each client whenever the factor moves",
            BrokerLog::install);
    public static final Internal<Boolean> CALLER = new Internal<>("Caller", "a change of quotahost's properties is never"
            + " refused: one that is wrong is stored, and has no effect but the gauge ConfigRefused", Caller::ofKafka);
    public static final Internal<Supplier<Authorizer>> AUTHORIZER = new Internal<>("StandardAuthorizer",
            "a QuotaFence does not start without client.quota.callback.fence.authorizer", () -> StandardAuthorizer::new);
    public static final Internal<Consumer<Authorizer>> AUTHORIZER_METRICS = new Internal<>("AuthorizerMetrics",
            "StandardAuthorizer answers no request behind a QuotaFence, but does behind a MonitoredQuotaFence",
            Internals::authorizerMetrics);
    public static final Internal<Boolean> SHUTDOWN_ORDER = new Internal<>("ShutdownOrder",
            "JPype interrupts the broker's threads in its shutdown, and the next start may have to recover logs",
            () -> exists("org.jpype.JPypeContext", "addShutdownHook", Thread.class));
    public static final Internal<Keystores.Reader> SSL = new Internal<>("Ssl", Keystores.WEAKER, Keystores::ofKafka);
    public static final Internal<Boolean> CONTROLLER = new Internal<>("ActiveController",
            "explain does not say which node counts partition mutations", () -> true);
    public static final Internal<Boolean> OFFLINE_LOG_DIRS = new Internal<>("OfflineLogDirs",
            "a log directory that Kafka has taken out of service counts like any other", () -> true);

    private static final List<Internal<?>> ALL = List.of(REQUESTS, RECORDS, MUTE, METERS, BROKER_LOG, CALLER, AUTHORIZER,
            AUTHORIZER_METRICS, SHUTDOWN_ORDER, SSL, CONTROLLER, OFFLINE_LOG_DIRS);

    private Internals() {}

    /**
     * To be called first by what Kafka loads: tries all of them and logs what is missing, each once in this JVM.
     *
     * @throws ConfigException if Kafka demands a method that our class doesn't have: it would fail on a request thread
     */
    public static void start(Class<?> ours) {
        List<String> unserved = KafkaVersion.unserved(ours);
        if (!unserved.isEmpty()) throw new ConfigException(KafkaVersion.sentence(ours, unserved));
        KafkaVersion.warn();
        tryAll();
        log();
    }

    static void tryAll() {
        List<String> without = Arrays.stream(System.getProperty(WITHOUT, "").split(",")).map(String::strip).toList();
        ALL.forEach(each -> each.tryOnce(without));
    }

    /** Logs what has turned out to be missing since the last call; the watch calls it often. */
    public static void log() {
        ALL.stream().map(Internal::news).filter(Objects::nonNull).forEach(LOG::warn);
    }

    /** All of them, for gauges and the doctor. */
    public static List<Internal<?>> all() {
        return ALL;
    }

    /** Kafka 4.0 has no metrics for plugins, and its authorizer needs none. */
    private static Consumer<Authorizer> authorizerMetrics() {
        try {
            exists("org.apache.kafka.common.metrics.Monitorable");
        } catch (ReflectiveOperationException e) {
            return authorizer -> {};
        }
        return UnseenMetrics::giveTo;
    }

    private static boolean exists(String type) throws ReflectiveOperationException {
        return Class.forName(type, false, Internals.class.getClassLoader()) != null;
    }

    private static boolean exists(String type, String method, Class<?>... parameters) throws ReflectiveOperationException {
        Class.forName(type, false, Internals.class.getClassLoader()).getMethod(method, parameters);
        return true;
    }
}
