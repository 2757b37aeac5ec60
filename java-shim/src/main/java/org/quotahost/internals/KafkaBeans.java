package org.quotahost.internals;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/** What only Kafka's own MBeans tell; their names and attributes are no public API. */
public final class KafkaBeans {
    /** Kafka makes its log directories' MBeans after its callback, and the disks are looked at from then on. */
    private static final long START_NANOS = TimeUnit.MINUTES.toNanos(2);
    private static final long LOADED = System.nanoTime();

    private KafkaBeans() {}

    /**
     * The node id of the active controller, the only node that counts partition mutations (ControllerApis); "" while
     * there is none, or this node knows of none. Every node of a KRaft cluster follows the quorum and shows its leader
     * (KafkaRaftMetrics).
     */
    public static String activeController() {
        try {
            Object leader = server().getAttribute(new ObjectName("kafka.server:type=raft-metrics"), "current-leader");
            return leader instanceof Number id && id.intValue() >= 0 ? String.valueOf(id.intValue()) : "";
        } catch (JMException | RuntimeException e) {
            // metrics.jmx.exclude may leave the MBean out, too
            Missing.warn("the MBean kafka.server:type=raft-metrics",
                    "explain does not know which node is the active controller");
            return "";
        }
    }

    /** The log directories that Kafka itself has taken out of service after an error; it has an MBean for each directory. */
    public static String[] offlineLogDirs() {
        List<String> offline = new ArrayList<>();
        try {
            Set<ObjectName> names = server().queryNames(
                    new ObjectName("kafka.log:type=LogManager,name=LogDirectoryOffline,*"), null);
            if (names.isEmpty() && System.nanoTime() - LOADED > START_NANOS) {
                Missing.warn("the MBean kafka.log:type=LogManager,name=LogDirectoryOffline",
                        "a log directory that Kafka takes out of service counts by its disk alone");
            }
            for (ObjectName name : names) {
                if (server().getAttribute(name, "Value") instanceof Number value && value.intValue() != 0) {
                    String directory = name.getKeyProperty("logDirectory");
                    offline.add(directory.startsWith("\"") ? ObjectName.unquote(directory) : directory);
                }
            }
        } catch (JMException e) {
            return offline.toArray(String[]::new); // an MBean has gone meanwhile; the next call sees the rest
        }
        return offline.toArray(String[]::new);
    }

    private static MBeanServer server() {
        return ManagementFactory.getPlatformMBeanServer();
    }
}
