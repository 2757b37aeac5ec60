package org.quotahost.internals;

import java.io.File;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.util.BrokerConfigs;

/**
 * A reader of Kafka's own MBeans, for what nothing else shows: what quotas measure, the active controller, offline log
 * directories, client software, idle threads and sizes of replicas. It also notes which of these MBeans are missing.
 *
 * <p>Names and attributes of these MBeans are no public API. Kafka's JmxReporter (on by default) registers those of its quotas
 * in this JVM: kafka.server:type=Produce|Fetch|Request|ControllerMutation,user=...,client-id=.... The name leaves out a tag
 * whose value is empty. MBeans are read one at a time, by name: a search through all of them would hold a lock that Kafka needs
 * for each new sensor. JMX takes locks, so no request thread may call this class.
 */
public final class KafkaBeans {
    /** The types of the MBeans, by quota type. */
    private static final String[] BEANS = {"Produce", "Fetch", "Request", "ControllerMutation"};
    private static final String[] RATES = {"byte-rate", "byte-rate", "request-time", "mutation-rate"};
    private static final int MUTATION = ClientQuotaType.CONTROLLER_MUTATION.ordinal();
    private static final MBeanServer SERVER = ManagementFactory.getPlatformMBeanServer();
    private static final Pattern PLAIN = Pattern.compile("[\\w-%\\. \t]*");
    private static final String SOFTWARE = "clientSoftwareName";
    private static final String LOG_DIR = "kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory=";

    /**
     * The software names (KIP-511) of client libraries that by default give up within a minute of a PAUSE: sarama, and all that
     * send no name, such as kafka-go, kafkajs, aiokafka and kafka-python 2 (docs/clients.md).
     */
    public static final List<String> IMPATIENT = List.of("sarama", "unknown");

    /** The MBeans of network threads, and those of connections by client software. */
    private static final Found SOCKETS = new Found("kafka.server:type=socket-server-metrics,*");
    private static final Found SIZES = new Found("kafka.log:type=Log,name=Size,*");
    private static final Found LEADERS = new Found("kafka.cluster:type=Partition,name=ReplicasCount,*");
    private static volatile List<String> offline = List.of();

    private KafkaBeans() {}

    /**
     * The MBeans whose names match a pattern. The JVM's search looks at all MBeans of a domain while Kafka's new sensors wait:
     * 0.2 s with 200,000 MBeans of clients. So it runs at most once a second, and takes at most a thousandth of the time.
     */
    private static final class Found {
        private static final long A_MILLISECOND = 1_000_000;
        private final ObjectName form;
        private Set<ObjectName> names = Set.of();
        private long due = System.nanoTime();

        Found(String form) {
            this.form = name(form);
        }

        synchronized Set<ObjectName> names(long now) {
            if (now - due < 0) return names;
            long began = System.nanoTime();
            names = SERVER.queryNames(form, null);
            due = now + 1_000 * Math.max(A_MILLISECOND, System.nanoTime() - began);
            return names;
        }
    }

    /** Checks at the start whether Kafka shows its metrics in JMX at all. */
    public static void lookFor(Map<String, ?> configs) {
        String reporters = BrokerConfigs.text(configs.get("metric.reporters"));
        boolean isDefault = configs.get("metric.reporters") == null;
        if (isDefault || reporters.contains("JmxReporter")) return;
        Internals.CLIENT_METERS.failed("metric.reporters=" + reporters
                + " has no org.apache.kafka.common.metrics.JmxReporter");
    }

    /** Returns null if JMX cannot have such a name. */
    private static ObjectName name(String text) {
        try {
            return new ObjectName(text);
        } catch (JMException e) {
            return null;
        }
    }

    /** Returns null if the MBean or the attribute does not exist now: Kafka makes and drops MBeans at any time. */
    private static Object attribute(ObjectName name, String attribute) {
        // This check is faster than the exception.
        if (name == null || !SERVER.isRegistered(name)) return null;
        try {
            return SERVER.getAttribute(name, attribute);
        } catch (JMException | RuntimeException e) {
            return null;
        }
    }

    // ---- Kafka's measurements for its quotas --------------------------------------------------------------------

    /**
     * Kafka's measurements for one pair of tags now.
     *
     * @param rate in the type's unit; NaN if unknown
     * @param delayMs the mean delay of responses lately; NaN if unknown
     * @param tokens the tokens left in the bucket of partition mutations (TokenBucket), below 0 if Kafka refuses; NaN if there
     *     is no bucket. Only the active controller charges its bucket
     */
    public record Reading(double rate, double delayMs, double tokens) {
        /** The reading of tags for which Kafka has no sensor. */
        public static final Reading NOTHING = new Reading(Double.NaN, Double.NaN, Double.NaN);

        /** Returns the reading of both together. A delay is unknown if Kafka has not delayed a response with these tags lately. */
        public Reading and(Reading more) {
            return this == NOTHING ? more : more == NOTHING ? this : new Reading(rate + more.rate,
                    Double.isNaN(delayMs) || more.delayMs > delayMs ? more.delayMs : delayMs, Math.min(tokens, more.tokens));
        }
    }

    /** Reads the attributes one by one: if one is missing, getAttributes() of Kafka's MBean logs a warning. */
    public static Reading read(int type, String user, String clientId) {
        if (Internals.CLIENT_METERS.isTakenAway()) return Reading.NOTHING;
        ObjectName name = name("kafka.server:type=" + BEANS[type] + key("user", user) + key("client-id", clientId));
        double rate = number(name, RATES[type]);
        if (Double.isNaN(rate)) return Reading.NOTHING;
        return new Reading(rate, number(name, "throttle-time"), type == MUTATION ? number(name, "tokens") : Double.NaN);
    }

    private static String key(String tag, String value) {
        return value.isEmpty() ? "" : "," + tag + "=" + sanitized(value);
    }

    /** Quotes a value of an MBean's name if necessary, as Kafka's Sanitizer does. */
    static String sanitized(String value) {
        return PLAIN.matcher(value).matches() ? value : ObjectName.quote(value);
    }

    private static double number(ObjectName name, String attribute) {
        return attribute(name, attribute) instanceof Double number && Double.isFinite(number) ? number : Double.NaN;
    }

    // ---- connections, the controller, the disks, the load -----------------------------------------------------

    /** Returns -1 if there is no such number. */
    private static long count(ObjectName name, String attribute) {
        return attribute(name, attribute) instanceof Number number ? number.longValue() : -1;
    }

    private static Stream<ObjectName> networkThreads(long now) {
        return SOCKETS.names(now).stream()
                .filter(name -> name.getKeyProperty("networkProcessor") != null && name.getKeyProperty(SOFTWARE) == null);
    }

    /**
     * Returns how many connections this broker has from clients with that software; here and below, now is System.nanoTime.
     * Brokers that copy replicas send no software name (BrokerBlockingSender), so the cluster's own listeners do not count.
     */
    public static long connections(String software, Set<String> ownListeners, long now) {
        if (Internals.CLIENT_SOFTWARE.isTakenAway()) return 0;
        List<ObjectName> known = SOCKETS.names(now).stream().filter(name -> name.getKeyProperty(SOFTWARE) != null).toList();
        boolean nameless = known.isEmpty() && networkThreads(now).anyMatch(thread -> number(thread, "connection-count") > 0);
        Internals.CLIENT_SOFTWARE.lacks(nameless ? SOFTWARE + " of " + SOCKETS.form : null, now);
        return known.stream().filter(name -> name.getKeyProperty(SOFTWARE).equals(software)
                        && !ownListeners.contains(name.getKeyProperty("listener")))
                .mapToLong(name -> Math.max(0, count(name, "connections"))).sum();
    }

    /**
     * Returns the node id of the active controller, the only node that counts partition mutations (ControllerApis), or "" if
     * there is none or this node does not know it. Every node of a KRaft cluster follows the quorum and shows its leader
     * (KafkaRaftMetrics). metrics.jmx.exclude may leave the MBean out.
     */
    public static String activeController() {
        if (Internals.CONTROLLER.isTakenAway()) return "";
        Object leader = attribute(name("kafka.server:type=raft-metrics"), "current-leader");
        Internals.CONTROLLER.lacks(leader == null ? "current-leader of kafka.server:type=raft-metrics" : null, System.nanoTime());
        return leader instanceof Number id && id.intValue() >= 0 ? String.valueOf(id.intValue()) : "";
    }

    /** Returns the log directories that Kafka has taken offline. A broker that stops shows none any more: the last known stay. */
    public static List<String> offlineLogDirs(String[] directories, long now) {
        if (Internals.OFFLINE_LOG_DIRS.isTakenAway()) return List.of();
        List<String> found = new ArrayList<>();
        boolean shown = false;
        for (String directory : directories) {
            long value = count(name(LOG_DIR + sanitized(new File(directory).getAbsolutePath())), "Value");
            shown |= value >= 0;
            if (value > 0 || (value < 0 && offline.contains(directory))) found.add(directory);
        }
        Internals.OFFLINE_LOG_DIRS.lacks(shown ? null : LOG_DIR, now);
        return offline = found;
    }

    /** Returns for each replica twice its bytes, plus 1 if it leads its partition; -1 if the replica is unknown or gone. */
    public static long[] replicas(String[] topics, int[] partitions, long now) {
        long[] sizes = new long[topics.length];
        Arrays.fill(sizes, -1);
        if (Internals.REPLICAS.isTakenAway()) return sizes;
        for (int i = 0; i < sizes.length; i++) {
            // A topic's name needs no quotes in an MBean's name.
            String of = ",topic=" + topics[i] + ",partition=" + partitions[i];
            long size = count(name("kafka.log:type=Log,name=Size" + of), "Value");
            long replicas = count(name("kafka.cluster:type=Partition,name=ReplicasCount" + of), "Value"); // 0 on a follower
            if (size >= 0 && replicas >= 0) sizes[i] = size << 1 | (replicas > 0 ? 1 : 0);
        }
        boolean known = sizes.length == 0 || Arrays.stream(sizes).anyMatch(size -> size >= 0);
        Internals.REPLICAS.lacks(known ? null : Stream.of(SIZES, LEADERS).filter(each -> each.names(now).isEmpty())
                .map(each -> each.form.toString()).findFirst().orElse(null), now);
        return sizes;
    }

    /** Returns [now, idle ns of request handlers, number of queued requests, idle ns of network threads by listener]. */
    public static Object[] load(long now) {
        if (Internals.LOAD.isTakenAway()) return new Object[] {now, -1, -1, Map.of()};
        // The pool of the broker's own request handlers (KIP-1207); before Kafka 4.2 all pools of the JVM.
        String pool = "kafka.server:type=KafkaRequestHandlerPool,name=", idle = "RequestHandlerAvgIdlePercent";
        long handlers = count(name(pool + "Broker" + idle), "Count");
        if (handlers < 0) handlers = count(name(pool + idle), "Count");
        Map<String, Double> waited = networkThreads(now).collect(Collectors.groupingBy(
                thread -> thread.getKeyProperty("listener"), TreeMap::new,
                Collectors.averagingDouble(thread -> number(thread, "io-wait-time-ns-total"))));
        waited.values().removeIf(mean -> mean.isNaN());
        Internals.LOAD.lacks(handlers < 0 ? idle + " of " + pool
                : waited.isEmpty() ? "io-wait-time-ns-total of " + SOCKETS.form : null, now);
        return new Object[] {now, handlers, count(name("kafka.network:type=RequestChannel,name=RequestQueueSize"), "Value"), waited};
    }
}
