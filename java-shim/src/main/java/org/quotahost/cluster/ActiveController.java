package org.quotahost.cluster;

import java.lang.management.ManagementFactory;
import javax.management.JMException;
import javax.management.ObjectName;

/**
 * Which node is the active controller: the only one that counts partition mutations (ControllerApis).
 *
 * <p>Every node of a KRaft cluster follows the quorum and shows its leader (KafkaRaftMetrics, current-leader).
 */
public final class ActiveController {
    private ActiveController() {}

    /** Its node id; "" while there is none, or this node knows of none. */
    public static String nodeId() {
        try {
            Object leader = ManagementFactory.getPlatformMBeanServer()
                    .getAttribute(new ObjectName("kafka.server:type=raft-metrics"), "current-leader");
            return leader instanceof Number id && id.intValue() >= 0 ? String.valueOf(id.intValue()) : "";
        } catch (JMException | RuntimeException e) {
            return ""; // metrics.jmx.exclude may leave the MBean out
        }
    }
}
