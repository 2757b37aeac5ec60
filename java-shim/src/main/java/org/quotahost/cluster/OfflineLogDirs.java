package org.quotahost.cluster;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/**
 * The log directories that Kafka itself has taken out of service after an error.
 *
 * <p>Kafka has an MBean for each directory (kafka.log:type=LogManager,name=LogDirectoryOffline).
 */
public final class OfflineLogDirs {
    private OfflineLogDirs() {}

    public static String[] now() {
        List<String> offline = new ArrayList<>();
        try {
            MBeanServer server = ManagementFactory.getPlatformMBeanServer();
            ObjectName pattern = new ObjectName("kafka.log:type=LogManager,name=LogDirectoryOffline,*");
            for (ObjectName name : server.queryNames(pattern, null)) {
                if (server.getAttribute(name, "Value") instanceof Number value && value.intValue() != 0) {
                    String directory = name.getKeyProperty("logDirectory");
                    offline.add(directory.startsWith("\"") ? ObjectName.unquote(directory) : directory);
                }
            }
        } catch (JMException e) {
            return offline.toArray(new String[0]); // an MBean has gone meanwhile; the next call sees the rest
        }
        return offline.toArray(new String[0]);
    }
}
