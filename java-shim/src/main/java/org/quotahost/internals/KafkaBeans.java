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

/** What only Kafka's own MBeans tell; their names and attributes are no public API. */
public final class KafkaBeans {
    private static final MBeanServer SERVER = ManagementFactory.getPlatformMBeanServer();
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
            Internals.CONTROLLER.failed(e.toString()); // metrics.jmx.exclude may leave the MBean out, too
            return "";
        }
    }

    /** The log directories that Kafka itself has taken out of service after an error; it has an MBean for each directory. */
    public static String[] offlineLogDirs() {
        List<String> offline = new ArrayList<>();
        if (Internals.OFFLINE_LOG_DIRS.isTakenAway()) return new String[0];
        try {
            Set<ObjectName> names = SERVER.queryNames(
                    new ObjectName("kafka.log:type=LogManager,name=LogDirectoryOffline,*"), null);
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
