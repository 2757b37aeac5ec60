package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.quotahost.inbox.Inbox;
import org.quotahost.metrics.Gauges;
import org.quotahost.metrics.NumberBean;
import org.quotahost.table.QuotaTable;
import org.quotahost.table.Tables;
import org.quotahost.topics.TopicQuotas;

/** The numbers that every broker with the callback shows. */
class StandardGaugesTest {
    private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
    private final Gauges gauges = new Gauges();

    @AfterEach
    void close() {
        gauges.close();
    }

    @Test
    void theStateNamesTheActiveControllerAndTheSecondsThatItsBucketsSaveUp() throws Exception {
        ObjectName raft = new ObjectName("kafka.server:type=raft-metrics");
        QuotaTable table = Tables.table();
        StandardGauges.add(gauges, table, new Inbox(), new Lease(() -> 0, table.factorInForce()::fallback), new TopicQuotas(),
                () -> 0, 100);
        assertEquals(List.of("controller\t", "mutation-seconds\t100"), lastTwoFacts(), "without Kafka nobody knows");

        double[] leader = {-1};
        server.registerMBean(NumberBean.of(Map.of("current-leader", () -> leader[0])), raft);
        try {
            assertEquals("controller\t", lastTwoFacts().get(0), "-1 is Kafka's word for none");
            leader[0] = 1001;
            assertEquals("controller\t1001", lastTwoFacts().get(0));
        } finally {
            server.unregisterMBean(raft);
        }
    }

    private List<String> lastTwoFacts() throws Exception {
        String[] types = {"java.lang.String", "java.lang.String"};
        String[] lines = (String[]) server.invoke(new ObjectName("quotahost:type=QuotaTable"), "explain",
                new Object[] {"alice", "app"}, types);
        return List.of(lines).subList(lines.length - 2, lines.length);
    }

    @Test
    void theyShowTheTableTheInboxAndTheLease() throws Exception {
        Inbox inbox = new Inbox();
        QuotaTable table = Tables.table(inbox, 3, 3_600);
        StandardGauges.add(gauges, table, inbox, new Lease(() -> 0, table.factorInForce()::fallback), new TopicQuotas(),
                () -> 0, 11);
        Tables.tags(table, Tables.PRODUCE, "alice", "a");
        Tables.publish(table, "alice", "a", Tables.CLIENT, 1_000);
        table.factor(0.5, "");

        ObjectName name = new ObjectName("quotahost:type=QuotaTable");
        assertEquals(1.0, server.getAttribute(name, "Clients"));
        assertEquals(3.0, server.getAttribute(name, "ClientsMax"));
        assertEquals(0.5, server.getAttribute(name, "Factor"));
        assertEquals(1.0, server.getAttribute(name, "State"), "THROTTLE");
        assertEquals(1.0, server.getAttribute(name, "Resolved"));
        assertEquals(1.0, server.getAttribute(new ObjectName("quotahost:type=Inbox"), "Depth"));
        Set<String> types = gauges.all().stream().map(Gauges.Gauge::type).collect(Collectors.toSet());
        assertEquals(Set.of("QuotaTable", "Fence", "Internals", "TopicQuotas", "Inbox", "Lease", "Host", "Watch"), types);
    }
}
