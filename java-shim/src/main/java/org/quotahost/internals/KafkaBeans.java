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
 * What only Kafka's own MBeans tell (what quotas measure, who is controller, lost disks, client software, idle threads,
 * sizes of replicas), and which of it is missing.
 *
 * <p>Names and attributes of these MBeans are no public API. Kafka's JmxReporter (on by default) registers those of its
 * quotas in this JVM: kafka.server:type=Produce|Fetch|Request|ControllerMutation,user=...,client-id=.... A tag whose value
 * is empty is left out of the name. One MBean is read at a time, by its name: a search through all of them would hold a lock
 * meanwhile that Kafka needs for each new sensor. JMX takes locks, so no request thread may come here.
 */
public final class KafkaBeans {
    /** By quota type. */
    private static final String[] BEANS = {"Produce", "Fetch", "Request", "ControllerMutation"};
    private static final String[] RATES = {"byte-rate", "byte-rate", "request-time", "mutation-rate"};
    private static final int MUTATION = ClientQuotaType.CONTROLLER_MUTATION.ordinal();
    private static final MBeanServer SERVER = ManagementFactory.getPlatformMBeanServer();
    private static final Pattern PLAIN = Pattern.compile("[\\w-%\\. \t]*");
    private static final String SOFTWARE = "clientSoftwareName";
    private static final String LOG_DIR = "kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory=";

    /**
     * What clients call their software (KIP-511) whose libraries give up within a minute of a PAUSE by default: sarama, and
     * all that don't name it, such as kafka-go, kafkajs, aiokafka and kafka-python 2 (docs/clients.md).
     */
    public static final List<String> IMPATIENT = List.of("sarama", "unknown");

    /** Of network threads, and of connections by client software. */
    private static final Found SOCKETS = new Found("kafka.server:type=socket-server-metrics,*");
    private static final Found SIZES = new Found("kafka.log:type=Log,name=Size,*");
    private static final Found LEADERS = new Found("kafka.cluster:type=Partition,name=ReplicasCount,*");

    private KafkaBeans() {}

    /**
     * The MBeans whose names have a form. To find them the JVM looks at all of a domain, and Kafka's new sensors wait: with
     * 200,000 MBeans of clients for 0.2 s. So that is done once a second at most, and for a thousandth of the time.
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

    /** Finds out, at the start, whether Kafka shows any of its metrics in JMX at all. */
    public static void lookFor(Map<String, ?> configs) {
        String reporters = BrokerConfigs.text(configs.get("metric.reporters"));
        boolean isDefault = configs.get("metric.reporters") == null;
        if (isDefault || reporters.contains("JmxReporter")) return;
        Internals.CLIENT_METERS.failed("metric.reporters=" + reporters
                + " has no org.apache.kafka.common.metrics.JmxReporter");
    }

    /** Null if JMX can't have such a name. */
    private static ObjectName name(String text) {
        try {
            return new ObjectName(text);
        } catch (JMException e) {
            return null;
        }
    }

    /** Null if there is none now: Kafka makes and drops MBeans at any time. */
    private static Object attribute(ObjectName name, String attribute) {
        // To ask whether it is there is quicker than the exception.
        if (name == null || !SERVER.isRegistered(name)) return null;
        try {
            return SERVER.getAttribute(name, attribute);
        } catch (JMException | RuntimeException e) {
            return null;
        }
    }

    // ---- what Kafka measures for its quotas ---------------------------------------------------------------------

    /**
     * What Kafka measures for one pair of tags now.
     *
     * @param rate in the type's unit; NaN for unknown
     * @param delayMs by how much Kafka has delayed responses lately, in the mean; NaN for unknown
     * @param tokens how many are left in the bucket of partition mutations (TokenBucket), below 0 if Kafka refuses; NaN if
     *     there is no bucket. Only the bucket of the active controller is charged
     */
    public record Reading(double rate, double delayMs, double tokens) {
        /** Of tags for which Kafka has no sensor. */
        public static final Reading NOTHING = new Reading(Double.NaN, Double.NaN, Double.NaN);

        /** Of both together. */
        public Reading and(Reading more) {
            return this == NOTHING ? more : more == NOTHING ? this : new Reading(rate + more.rate,
                    Math.max(delayMs, more.delayMs), Math.min(tokens, more.tokens));
        }
    }

    /** One attribute after the other: if one is missing, getAttributes() of Kafka's MBean logs a warning. */
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

    /** As Kafka's Sanitizer quotes a value of an MBean's name, if it needs to be. */
    static String sanitized(String value) {
        return PLAIN.matcher(value).matches() ? value : ObjectName.quote(value);
    }

    private static double number(ObjectName name, String attribute) {
        return attribute(name, attribute) instanceof Double number && Double.isFinite(number) ? number : Double.NaN;
    }

    // ---- connections, the controller, the disks, the load -----------------------------------------------------

    /** -1 if there is none. */
    private static long count(ObjectName name, String attribute) {
        return attribute(name, attribute) instanceof Number number ? number.longValue() : -1;
    }

    private static Stream<ObjectName> networkThreads(long now) {
        return SOCKETS.names(now).stream()
                .filter(name -> name.getKeyProperty("networkProcessor") != null && name.getKeyProperty(SOFTWARE) == null);
    }

    /**
     * How many connections this broker has from clients with that software; now, as below, by System.nanoTime. Brokers that
     * copy replicas don't name theirs (BrokerBlockingSender), so the listeners of the cluster's own nodes don't count.
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
     * The node id of the active controller, the only node that counts partition mutations (ControllerApis); "" while
     * there is none, or this node knows of none. Every node of a KRaft cluster follows the quorum and shows its leader
     * (KafkaRaftMetrics). metrics.jmx.exclude may leave the MBean out.
     */
    public static String activeController() {
        if (Internals.CONTROLLER.isTakenAway()) return "";
        Object leader = attribute(name("kafka.server:type=raft-metrics"), "current-leader");
        Internals.CONTROLLER.lacks(leader == null ? "current-leader of kafka.server:type=raft-metrics" : null, System.nanoTime());
        return leader instanceof Number id && id.intValue() >= 0 ? String.valueOf(id.intValue()) : "";
    }

    /** Those of these log directories that Kafka itself has taken out of service after an error. */
    public static List<String> offlineLogDirs(String[] directories, long now) {
        if (Internals.OFFLINE_LOG_DIRS.isTakenAway()) return List.of();
        List<String> offline = new ArrayList<>();
        boolean shown = false;
        for (String directory : directories) {
            long value = count(name(LOG_DIR + sanitized(new File(directory).getAbsolutePath())), "Value");
            shown |= value >= 0;
            if (value > 0) offline.add(directory);
        }
        Internals.OFFLINE_LOG_DIRS.lacks(shown ? null : LOG_DIR, now);
        return offline;
    }

    /** Of each of these replicas twice the bytes, and 1 more if it leads its partition; -1 if that isn't known, or it is gone. */
    public static long[] replicas(String[] topics, int[] partitions, long now) {
        long[] sizes = new long[topics.length];
        Arrays.fill(sizes, -1);
        if (Internals.REPLICAS.isTakenAway()) return sizes;
        for (int i = 0; i < sizes.length; i++) {
            // Names of topics need no quotes in an MBean's name.
            String of = ",topic=" + topics[i] + ",partition=" + partitions[i];
            long size = count(name("kafka.log:type=Log,name=Size" + of), "Value");
            long replicas = count(name("kafka.cluster:type=Partition,name=ReplicasCount" + of), "Value"); // 0 of a follower
            if (size >= 0 && replicas >= 0) sizes[i] = size << 1 | (replicas > 0 ? 1 : 0);
        }
        boolean known = sizes.length == 0 || Arrays.stream(sizes).anyMatch(size -> size >= 0);
        Internals.REPLICAS.lacks(known ? null : Stream.of(SIZES, LEADERS).filter(each -> each.names(now).isEmpty())
                .map(each -> each.form.toString()).findFirst().orElse(null), now);
        return sizes;
    }

    /** For how many ns Kafka's threads were idle: now; request handlers; how many requests wait; by listener, network threads. */
    public static Object[] load(long now) {
        if (Internals.LOAD.isTakenAway()) return new Object[] {now, -1, -1, Map.of()};
        // Of the pool of the broker's own request handlers (KIP-1207), and before Kafka 4.2 of all pools of the JVM.
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
