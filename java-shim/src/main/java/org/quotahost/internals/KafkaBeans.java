package org.quotahost.internals;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.quotahost.util.BrokerConfigs;
import org.quotahost.util.Sanitized;

/**
 * What only Kafka's own MBeans tell: what it measures for its quotas, who the controller is, which disks are gone.
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
    /** Kafka counts its metrics by one, which has an MBean as soon as a JmxReporter shows any (Metrics). */
    private static final String ANY = "kafka.server:type=kafka-metrics-count";
    /** Kafka makes its log directories' MBeans after its callback, and the disks are looked at from then on. */
    private static final long START_NANOS = TimeUnit.MINUTES.toNanos(2);
    private static final long LOADED = System.nanoTime();

    /**
     * What clients call their software (KIP-511) whose libraries give up within a minute of a PAUSE by default: sarama, and
     * all that don't name it, such as kafka-go, kafkajs, aiokafka and kafka-python 2 (docs/clients.md).
     */
    public static final List<String> IMPATIENT = List.of("sarama", "unknown");

    private static final long A_MINUTE = TimeUnit.MINUTES.toNanos(1);
    private static Map<String, Integer> connections = Map.of();
    private static long connectionsCounted = LOADED - A_MINUTE;

    private KafkaBeans() {}

    /** Finds out, at the start, whether Kafka shows any of its metrics in JMX at all. */
    public static void lookFor(Map<String, ?> configs) {
        String reporters = BrokerConfigs.text(configs.get("metric.reporters"));
        boolean isDefault = configs.get("metric.reporters") == null;
        if (isDefault || reporters.contains("JmxReporter") || SERVER.isRegistered(name(ANY))) return;
        Internals.CLIENT_METERS.failed("metric.reporters=" + reporters
                + " has no org.apache.kafka.common.metrics.JmxReporter");
    }

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
    }

    /** One attribute after the other: if one is missing, getAttributes() of Kafka's MBean logs a warning. */
    public static Reading read(int type, String user, String clientId) {
        ObjectName name = name("kafka.server:type=" + BEANS[type] + key("user", user) + key("client-id", clientId));
        double rate = number(name, RATES[type]);
        if (Double.isNaN(rate)) return Reading.NOTHING;
        return new Reading(rate, number(name, "throttle-time"), type == MUTATION ? number(name, "tokens") : Double.NaN);
    }

    private static String key(String tag, String value) {
        return value.isEmpty() ? "" : "," + tag + "=" + Sanitized.bean(value);
    }

    /** Null if JMX can't have such a name. */
    private static ObjectName name(String text) {
        try {
            return new ObjectName(text);
        } catch (JMException e) {
            return null;
        }
    }

    private static double number(ObjectName name, String attribute) {
        // To ask whether it is there is quicker than the exception.
        if (name == null || Internals.CLIENT_METERS.isTakenAway() || !SERVER.isRegistered(name)) return Double.NaN;
        try {
            Object value = SERVER.getAttribute(name, attribute);
            return value instanceof Double number && Double.isFinite(number) ? number : Double.NaN;
        } catch (JMException | RuntimeException e) {
            return Double.NaN; // Kafka drops the sensor just now
        }
    }

    /**
     * How many connections this broker has from clients with that software, as of at most a minute ago: to find these
     * MBeans the JVM looks at the names of all.
     */
    public static synchronized int connections(String software) {
        long now = System.nanoTime();
        if (now - connectionsCounted >= A_MINUTE) {
            connections = countConnections();
            connectionsCounted = now;
        }
        return connections.getOrDefault(software, 0);
    }

    static Map<String, Integer> countConnections() {
        Map<String, Integer> counts = new HashMap<>();
        try {
            ObjectName all = new ObjectName("kafka.server:type=socket-server-metrics,clientSoftwareName=*,*");
            for (ObjectName name : SERVER.queryNames(all, null)) {
                if (!(SERVER.getAttribute(name, "connections") instanceof Number number)) continue;
                counts.merge(name.getKeyProperty("clientSoftwareName"), number.intValue(), Integer::sum);
            }
        } catch (JMException e) {
            // An MBean has gone meanwhile; the next minute sees the rest.
        }
        return counts;
    }

    /**
     * The node id of the active controller, the only node that counts partition mutations (ControllerApis); "" while
     * there is none, or this node knows of none. Every node of a KRaft cluster follows the quorum and shows its leader
     * (KafkaRaftMetrics).
     */
    public static String activeController() {
        if (Internals.CONTROLLER.isTakenAway()) return "";
        try {
            Object leader = SERVER.getAttribute(new ObjectName("kafka.server:type=raft-metrics"), "current-leader");
            return leader instanceof Number id && id.intValue() >= 0 ? String.valueOf(id.intValue()) : "";
        } catch (JMException | RuntimeException e) {
            // metrics.jmx.exclude may leave the MBean out, too; a broker that starts doesn't have it yet.
            if (System.nanoTime() - LOADED > START_NANOS) Internals.CONTROLLER.failed(e.toString());
            return "";
        }
    }

    /** The log directories that Kafka itself has taken out of service after an error; it has an MBean for each directory. */
    public static String[] offlineLogDirs() {
        List<String> offline = new ArrayList<>();
        if (Internals.OFFLINE_LOG_DIRS.isTakenAway()) return new String[0];
        try {
            Set<ObjectName> names = SERVER.queryNames(name("kafka.log:type=LogManager,name=LogDirectoryOffline,*"), null);
            if (names.isEmpty() && System.nanoTime() - LOADED > START_NANOS) {
                Internals.OFFLINE_LOG_DIRS.failed("no LogDirectoryOffline of kafka.log:type=LogManager");
            }
            for (ObjectName name : names) {
                if (!(SERVER.getAttribute(name, "Value") instanceof Number value) || value.intValue() == 0) continue;
                String directory = name.getKeyProperty("logDirectory");
                offline.add(directory.startsWith("\"") ? ObjectName.unquote(directory) : directory);
            }
        } catch (JMException e) {
            // An MBean has gone meanwhile; the next call sees the rest.
        }
        return offline.toArray(String[]::new);
    }
}
