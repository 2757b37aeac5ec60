package org.quotahost.internals;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.management.ManagementFactory;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.StandardMBean;
import org.junit.jupiter.api.Test;

/** What Kafka's MBeans tell of the software of clients (KIP-511), which Kafka counts by version and network thread. */
class ClientSoftwareTest {
    /** An MBean of Kafka's with its one attribute. */
    public interface Counted {
        int getconnections();
    }

    @Test
    void connectionsOfAllVersionsAndThreadsAreAddedUp() throws Exception {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        String form = "kafka.server:type=socket-server-metrics,clientSoftwareName=%s,clientSoftwareVersion=%s,"
                + "listener=PLAINTEXT,networkProcessor=%d";
        ObjectName one = new ObjectName(form.formatted("sarama", "1.61", 1));
        ObjectName other = new ObjectName(form.formatted("sarama", "1.60", 2));
        Counted three = () -> 3;
        for (ObjectName name : new ObjectName[] {one, other}) {
            server.registerMBean(new StandardMBean(three, Counted.class), name);
        }
        try {
            assertEquals(6, KafkaBeans.countConnections().get("sarama"));
        } finally {
            server.unregisterMBean(one);
            server.unregisterMBean(other);
        }
    }
}
