package org.quotahost.internals;

import java.io.PrintStream;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Monitorable;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.quotahost.util.Resources;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * All that quotahost uses of Kafka, JPype and the log though it is no public API, tried at the start: what is missing makes
 * one WARN and a gauge, and the broker starts; but a Kafka that demands a method which quotahost has not is refused. {@code
 * quotahost doctor} runs main() beforehand.
 *
 * <p>An operator may take single ones away by the JVM option {@code -Dquotahost.internals.without=NAME,NAME}, to find
 * out whether one of them is at fault.
 */
public final class Internals {
    public static final String WITHOUT = "quotahost.internals.without";
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.internals");

    public static final Internal<Requests> REQUESTS = new Internal<>("Requests", "nobody who is turned back and tries"
            + " again at once is muted, RejectedBytes stays 0, in a PAUSE a controller refuses also those creations that"
            + " only validate or that are of internal topics, and a change of quotahost's properties is never refused: one"
            + " that is wrong is stored, and has no effect but the gauge ConfigRefused", Requests::ofKafka);
    public static final Internal<Boolean> MUTE = new Internal<>("Mute",
            "nobody who is turned back and tries again at once is muted", Mute::ofKafka);
    public static final Internal<Meters> METERS = new Internal<>("Meters",
            "topic quotas turn no request back, and Failed and FailedBytes stay 0", Meters::ofKafka);
    public static final Internal<Boolean> CLIENT_METERS = new Internal<>("ClientMeters", "the factor multiplies the"
            + " newcomers' rates for clients without a quota, and usage, top and shadow know no rates", () -> true);
    public static final Internal<Boolean> BROKER_LOG = new Internal<>("BrokerLog", "the broker's log contains every"
            + " request that the fence turns back, and a line of Kafka's for each client whenever the factor moves",
            () -> BrokerLog.install()); // a reference to the method would load log4j2 here
    public static final Internal<Consumer<Authorizer>> AUTHORIZER_METRICS = new Internal<>("AuthorizerMetrics",
            "StandardAuthorizer answers no request behind a QuotaFence, but does behind a MonitoredQuotaFence",
            Internals::authorizerMetrics);
    public static final Internal<Boolean> SHUTDOWN_ORDER = new Internal<>("ShutdownOrder",
            "JPype interrupts the broker's threads in its shutdown, and the next start may have to recover logs",
            ShutdownOrder::ofJPype);
    public static final Internal<Map<String, String>> SSL = new Internal<>("Ssl", Keystores.WEAKER,
            () -> Keystores.stores(new String[0])); // it loads Kafka's classes
    public static final Internal<Boolean> CONTROLLER = new Internal<>("ActiveController",
            "explain does not say which node counts partition mutations", () -> true);
    public static final Internal<Boolean> OFFLINE_LOG_DIRS = new Internal<>("OfflineLogDirs",
            "a log directory that Kafka has taken out of service counts like any other", () -> true);
    public static final Internal<Boolean> REPLICAS = new Internal<>("Replicas",
            "budgets go by what was last known of their topics' sizes", () -> true);
    public static final Internal<Boolean> LOAD = new Internal<>("Load",
            "the factor source load fails, and its factor is 1", () -> true);
    public static final Internal<Boolean> CLIENT_SOFTWARE = new Internal<>("ClientSoftware",
            "the gauges ImpatientClients stay 0", () -> true);

    public static final List<Internal<?>> ALL = List.of(REQUESTS, MUTE, METERS, CLIENT_METERS, BROKER_LOG,
            AUTHORIZER_METRICS, SHUTDOWN_ORDER, SSL, CONTROLLER, OFFLINE_LOG_DIRS, REPLICAS, LOAD, CLIENT_SOFTWARE);

    /** What Kafka loads, by name, since Kafka 4.0 cannot load the last two. */
    private static final List<String> OURS = List.of("org.quotahost.PythonQuotaCallback", "org.quotahost.QuotaFence",
            "org.quotahost.MonitoredPythonQuotaCallback", "org.quotahost.MonitoredQuotaFence");

    private Internals() {}

    /**
     * To be called first by what Kafka loads: tries all of them and logs what is missing, each once in this JVM.
     * ConfigException if Kafka demands a method that our class doesn't have: it would fail on a request thread.
     */
    public static synchronized void start(Class<?> ours) {
        List<String> unserved = unserved(ours);
        if (!unserved.isEmpty()) throw new ConfigException(sentence(ours, unserved));
        String sentence = REQUESTS.tried ? null : untested(kafkasVersion(), Resources.versions().getProperty("kafka", ""));
        if (sentence != null) LOG.warn(sentence);
        tryAll();
        log();
    }

    static void tryAll() {
        List<String> without = List.of(System.getProperty(WITHOUT, "").strip().split("\\s*,\\s*"));
        ALL.forEach(each -> each.tryOnce(without));
    }

    /** Logs what has turned out to be missing since the last call; called often. */
    public static void log() {
        ALL.stream().map(Internal::news).filter(Objects::nonNull).forEach(LOG::warn);
    }

    /**
     * Says what a broker would say at its start of the Kafka on the class path: lines of {@code weak} or {@code wrong}, a
     * tab, and a sentence, and at last {@code end}. Without a Kafka it ends with an exception.
     */
    public static void main(String[] args) throws ClassNotFoundException {
        Class.forName(OURS.get(0), false, Internals.class.getClassLoader());
        Set<String> lines = new LinkedHashSet<>();
        for (String name : OURS) {
            try {
                Class<?> ours = Class.forName(name, false, Internals.class.getClassLoader());
                List<String> unserved = unserved(ours);
                if (!unserved.isEmpty()) lines.add("wrong\t" + sentence(ours, unserved));
            } catch (LinkageError e) {
                // A Kafka without Monitorable cannot load those.
                if (!name.contains("Monitored")) lines.add("wrong\tThis Kafka cannot load " + name + ": " + e);
            }
        }
        tryAll();
        ALL.stream().filter(Internal::missing).forEach(each -> lines.add("weak\t" + each.sentence()));
        lines.add("end");
        lines.forEach(new PrintStream(System.out, true, StandardCharsets.UTF_8)::println);
    }

    // ---- whether this jar was made for this Kafka ---------------------------------------------------------------

    /** What to say of a version of Kafka's; null if it is of the tested lines ("4.0 4.1"), or if nothing is known. */
    static String untested(String version, String lines) {
        boolean known = !version.isEmpty() && !lines.isEmpty();
        if (!known || Arrays.stream(lines.split(" ")).anyMatch(line -> version.startsWith(line + "."))) return null;
        return "quotahost was never tested with Kafka " + version + ", only with " + lines.replaceFirst(" .* ", " to ");
    }

    /** "" if it is not known. Kafka's own reader of it has moved between 4.3 and 4.4, the resource has not. */
    private static String kafkasVersion() {
        try {
            return Resources.properties(ClientQuotaCallback.class, "/kafka/kafka-version.properties").getProperty("version", "");
        } catch (ConfigException e) {
            return "";
        }
    }

    /** What Kafka's interfaces demand of a class of ours and it doesn't have. */
    static List<String> unserved(Class<?> ours) {
        return Arrays.stream(ours.getMethods()).filter(method -> Modifier.isAbstract(method.getModifiers()))
                .map(Internals::signature).sorted().toList();
    }

    private static String signature(Method method) {
        return Arrays.stream(method.getParameterTypes()).map(Class::getSimpleName).collect(
                Collectors.joining(", ", method.getReturnType().getSimpleName() + " " + method.getName() + "(", ")"));
    }

    private static String sentence(Class<?> ours, List<String> unserved) {
        return "This Kafka demands " + String.join("; ", unserved) + " of " + ours.getName()
                + ", which quotahost cannot answer; look for a quotahost that was made for this Kafka";
    }

    // ---- one use ----------------------------------------------------------------------------------------------

    /**
     * From Kafka 4.1 on StandardAuthorizer fails if nobody gives it metrics, and Kafka gives them only to the authorizer
     * that it loads itself, if that is a Monitorable. QuotaFence is none, so it gives these, which no reporter shows.
     */
    private static Consumer<Authorizer> authorizerMetrics() throws ClassNotFoundException {
        ClassLoader loader = Internals.class.getClassLoader();
        try {
            Class.forName("org.apache.kafka.common.metrics.Monitorable", false, loader);
        } catch (ClassNotFoundException e) {
            return authorizer -> {};
        }
        Class.forName("org.apache.kafka.common.metrics.internals.PluginMetricsImpl", false, loader);
        return UnseenMetrics::giveTo;
    }

    /** Loads on Kafka 4.1 and newer only. */
    private static final class UnseenMetrics {
        static void giveTo(Authorizer authorizer) {
            PluginMetrics unseen = new PluginMetricsImpl(new Metrics(), Map.of());
            if (authorizer instanceof Monitorable monitorable) monitorable.withPluginMetrics(unseen);
        }
    }

    /** One use of something that is no public API: what was found for it, or why it is missing. Request threads only read. */
    public static final class Internal<T> {
        private static final long LACKS_NANOS = TimeUnit.MINUTES.toNanos(2);
        private final String name, weaker;
        private final Callable<T> trial;
        boolean tried;
        private boolean logged;
        volatile T found;
        /** Why it is missing, or null. */
        volatile String why;
        /** 0 while it lacks nothing. */
        volatile long lacksSince;

        /**
         * @param weaker what quotahost does otherwise, or not at all, where it is missing; half a sentence
         * @param trial whatever it throws means that it is missing
         */
        Internal(String name, String weaker, Callable<T> trial) {
            this.name = name;
            this.weaker = weaker;
            this.trial = trial;
        }

        /** What was found; null before the trial, and where it is missing. */
        public T get() {
            return found;
        }

        public String name() {
            return name;
        }

        public boolean missing() {
            return why != null;
        }

        /** The trial has not found it, or an operator has taken it away. Before the trial nothing is known of it. */
        boolean isTakenAway() {
            return why != null && found == null;
        }

        /** It has just not done what it is for. Any thread may say so; the log gets the first reason. */
        public void failed(String reason) {
            if (why == null) why = reason;
        }

        /** The same by what was thrown. A full heap or stack says nothing of this Kafka, and no text can be made of it now. */
        public void failed(Throwable reason) {
            if (!(reason instanceof VirtualMachineError)) failed(reason.toString());
        }

        /**
         * It lacks this of Kafka's now, by System.nanoTime, or lacks nothing (null). It has failed once it lacks something for two
         * minutes without a break: Kafka makes some of its MBeans after its callback, and takes them away before it closes that.
         */
        public void lacks(String what, long now) {
            long since = lacksSince; // several threads read JMX
            if (what == null || since == 0) lacksSince = what == null ? 0 : now | 1;
            else if (now - since > LACKS_NANOS) failed("no " + what);
        }

        synchronized void tryOnce(List<String> without) {
            if (tried) return;
            tried = true;
            try {
                if (without.contains(name)) throw new IllegalStateException("-D" + WITHOUT);
                found = trial.call();
            } catch (Throwable e) { // NoClassDefFoundError above all
                failed(e.toString());
            }
        }

        /** The line that says what is missing, or null; each is asked for once. */
        synchronized String news() {
            if (why == null || logged) return null;
            logged = true;
            return sentence();
        }

        String sentence() {
            return name + " is missing, or not as quotahost knows it (" + why + "), so " + weaker;
        }
    }
}
