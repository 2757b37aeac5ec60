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
import java.util.stream.Stream;
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
 * All that quotahost uses of Kafka, JPype and the log without a public API, tried at the start: if something is missing, the
 * broker starts, with one WARN and a gauge; but if Kafka demands a method that quotahost does not have, the start is refused.
 * {@code quotahost doctor} runs main() beforehand.
 *
 * <p>An operator may switch off single internals with the JVM option {@code -Dquotahost.internals.without=NAME,NAME}, to find
 * out whether one of them is at fault.
 */
public final class Internals {
    public static final String WITHOUT = "quotahost.internals.without";
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.internals");

    public static final Internal<Requests> REQUESTS = new Internal<>("Requests", "clients that retry immediately after a"
            + " refusal are not muted; RejectedBytes stays 0; in a PAUSE a controller also refuses creations that only"
            + " validate or are for internal topics; a wrong change of quotahost's properties is stored instead of refused,"
            + " and only sets the gauge ConfigRefused", Requests::ofKafka);
    public static final Internal<Boolean> MUTE = new Internal<>("Mute",
            "clients that retry immediately after a refusal are not muted", Mute::ofKafka);
    public static final Internal<Meters> METERS = new Internal<>("Meters",
            "topic quotas turn no request back, and Failed and FailedBytes stay 0", Meters::ofKafka);
    public static final Internal<Boolean> CLIENT_METERS = new Internal<>("ClientMeters", "the factor multiplies the"
            + " newcomers' rates for clients without a quota, and usage, top and shadow know no rates", () -> true);
    public static final Internal<Boolean> BROKER_LOG = new Internal<>("BrokerLog", "the broker's log contains every"
            + " request that the fence turns back, and a line of Kafka's for each client whenever the factor moves",
            () -> BrokerLog.install()); // a method reference would load log4j2 here
    public static final Internal<Consumer<Authorizer>> AUTHORIZER_METRICS = new Internal<>("AuthorizerMetrics",
            "StandardAuthorizer answers no request behind a QuotaFence, but does behind a MonitoredQuotaFence",
            Internals::authorizerMetrics);
    public static final Internal<Boolean> SHUTDOWN_ORDER = new Internal<>("ShutdownOrder",
            "JPype interrupts the broker's threads in its shutdown, and the next start may have to recover logs",
            ShutdownOrder::ofJPype);
    public static final Internal<Map<String, String>> SSL = new Internal<>("Ssl", Keystores.WEAKER,
            () -> Keystores.stores(new String[0])); // the trial loads Kafka's classes
    public static final Internal<Boolean> CONTROLLER = new Internal<>("ActiveController",
            "explain does not say which node counts partition mutations", () -> true);
    public static final Internal<Boolean> OFFLINE_LOG_DIRS = new Internal<>("OfflineLogDirs",
            "an offline log directory counts like any other", () -> true);
    public static final Internal<Boolean> REPLICAS = new Internal<>("Replicas",
            "budgets use the last known sizes of their topics", () -> true);
    public static final Internal<Boolean> LOAD = new Internal<>("Load",
            "the factor source load fails, and its factor is 1", () -> true);
    public static final Internal<Boolean> CLIENT_SOFTWARE = new Internal<>("ClientSoftware",
            "the gauges ImpatientClients stay 0", () -> true);

    public static final List<Internal<?>> ALL = List.of(REQUESTS, MUTE, METERS, CLIENT_METERS, BROKER_LOG,
            AUTHORIZER_METRICS, SHUTDOWN_ORDER, SSL, CONTROLLER, OFFLINE_LOG_DIRS, REPLICAS, LOAD, CLIENT_SOFTWARE);

    /** The classes that Kafka loads, by name, since Kafka 4.0 cannot load the last two. */
    private static final List<String> OURS = List.of("org.quotahost.PythonQuotaCallback", "org.quotahost.QuotaFence",
            "org.quotahost.MonitoredPythonQuotaCallback", "org.quotahost.MonitoredQuotaFence");

    private Internals() {}

    /**
     * Tries all internals and logs missing ones, once in this JVM; every class that Kafka loads calls this first. Throws
     * ConfigException if Kafka demands a method that the class does not have: a call would fail on a request thread.
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

    /** Logs the internals that were found missing since the last call; called often. */
    public static void log() {
        ALL.stream().map(Internal::news).filter(Objects::nonNull).forEach(LOG::warn);
    }

    /**
     * Prints what a broker would report at its start about the Kafka on the class path: lines of {@code weak} or {@code wrong},
     * a sentence, and maybe its remedy, divided by tabs, and then {@code end}. If there is no Kafka, an exception ends the program.
     * The arguments are PROPERTY=CLASS for each class that a broker of this Kafka is to load.
     */
    public static void main(String[] classes) throws ClassNotFoundException {
        Class.forName(OURS.get(0), false, Internals.class.getClassLoader());
        Set<String> lines = new LinkedHashSet<>();
        for (String given : Stream.concat(OURS.stream(), Arrays.stream(classes)).toList()) {
            String name = given.substring(given.indexOf('=') + 1);
            try {
                Class<?> ours = Class.forName(name, false, Internals.class.getClassLoader());
                List<String> unserved = unserved(ours);
                if (!unserved.isEmpty()) lines.add("wrong\t" + sentence(ours, unserved));
            } catch (ClassNotFoundException | LinkageError e) {
                String problem = "wrong\tThis Kafka cannot load " + given + ": " + e;
                // A Kafka without Monitorable cannot load the Monitored classes.
                if (!given.equals(name)) lines.add(problem + "\tcorrect the name, or put its jar into libs");
                else if (!name.contains("Monitored")) lines.add(problem);
            }
        }
        tryAll();
        ALL.stream().filter(Internal::missing).forEach(each -> lines.add("weak\t" + each.sentence()));
        lines.add("end");
        lines.forEach(new PrintStream(System.out, true, StandardCharsets.UTF_8)::println);
    }

    // ---- whether this jar was made for this Kafka ---------------------------------------------------------------

    /** Returns the warning about an untested Kafka version; null if it is one of the tested lines ("4.0 4.1") or nothing is known. */
    static String untested(String version, String lines) {
        boolean known = !version.isEmpty() && !lines.isEmpty();
        if (!known || Arrays.stream(lines.split(" ")).anyMatch(line -> version.startsWith(line + "."))) return null;
        return "quotahost was never tested with Kafka " + version + ", only with " + lines.replaceFirst(" .* ", " to ");
    }

    /** Returns "" if the version is unknown. Kafka's own reader moved between 4.3 and 4.4, this resource did not. */
    private static String kafkasVersion() {
        try {
            return Resources.properties(ClientQuotaCallback.class, "/kafka/kafka-version.properties").getProperty("version", "");
        } catch (ConfigException e) {
            return "";
        }
    }

    /** Returns the methods that Kafka's interfaces demand of a class of ours and that the class does not have. */
    static List<String> unserved(Class<?> ours) {
        return Arrays.stream(ours.getMethods()).filter(method -> Modifier.isAbstract(method.getModifiers()))
                .map(Internals::signature).sorted().toList();
    }

    private static String signature(Method method) {
        return Arrays.stream(method.getParameterTypes()).map(Class::getSimpleName).collect(
                Collectors.joining(", ", method.getReturnType().getSimpleName() + " " + method.getName() + "(", ")"));
    }

    private static String sentence(Class<?> ours, List<String> unserved) {
        return "This Kafka requires " + String.join("; ", unserved) + " of " + ours.getName()
                + ", which this quotahost lacks; install a quotahost release for this Kafka version";
    }

    // ---- one internal -----------------------------------------------------------------------------------------

    /**
     * Gives the inner authorizer metrics, which no reporter shows. From Kafka 4.1 on StandardAuthorizer fails without metrics,
     * and Kafka gives them only to the authorizer that it loads itself, if that one is Monitorable; QuotaFence is not.
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

    /** This class loads only on Kafka 4.1 and newer. */
    private static final class UnseenMetrics {
        static void giveTo(Authorizer authorizer) {
            PluginMetrics unseen = new PluginMetricsImpl(new Metrics(), Map.of());
            if (authorizer instanceof Monitorable monitorable) monitorable.withPluginMetrics(unseen);
        }
    }

    /** One use of something without a public API: what was found for it, or why it is missing. Request threads only read it. */
    public static final class Internal<T> {
        private static final long LACKS_NANOS = TimeUnit.MINUTES.toNanos(2);
        private final String name, weaker;
        private final Callable<T> trial;
        boolean tried;
        private boolean logged;
        volatile T found;
        /** The reason why this internal is missing, or null. */
        volatile String why;
        /** Since when this internal lacks something (System.nanoTime); 0 if it lacks nothing. */
        volatile long lacksSince;

        /**
         * @param weaker what quotahost does in its place, or cannot do, if it is missing; half a sentence
         * @param trial if it throws anything, the internal is missing
         */
        Internal(String name, String weaker, Callable<T> trial) {
            this.name = name;
            this.weaker = weaker;
            this.trial = trial;
        }

        /** Returns what was found; null before the trial, and if this internal is missing. */
        public T get() {
            return found;
        }

        public String name() {
            return name;
        }

        public boolean missing() {
            return why != null;
        }

        /** Returns whether the trial failed or an operator switched this internal off; false before the trial. */
        boolean isTakenAway() {
            return why != null && found == null;
        }

        /** Notes that this internal failed at its work. Any thread may call this; the log gets the first reason. */
        public void failed(String reason) {
            if (why == null) why = reason;
        }

        /** Notes what was thrown. A full heap or stack says nothing about Kafka, and no text can be made of it at that time. */
        public void failed(Throwable reason) {
            if (!(reason instanceof VirtualMachineError)) failed(reason.toString());
        }

        /**
         * Notes what of Kafka's is missing now (System.nanoTime); null for nothing. This internal fails if something is missing
         * for two minutes without a break: Kafka makes some MBeans after its callback, and removes them before it closes that.
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
            } catch (Throwable e) { // above all NoClassDefFoundError
                failed(e.toString());
            }
        }

        /** Returns the line that says what is missing, once; otherwise null. */
        synchronized String news() {
            if (why == null || logged) return null;
            logged = true;
            return sentence();
        }

        String sentence() {
            return name + " of this Kafka is missing or has changed (" + why + "), so " + weaker;
        }
    }
}
