package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.management.ManagementFactory;
import java.util.List;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.quotahost.inbox.Inbox;
import org.quotahost.metrics.Gauges;
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

    /** Python sets LackOfData, and cannot while it is silent. */
    @Test
    void aPauseForASilentHostIsShownAsLackOfData() throws Exception {
        long[] now = {0};
        QuotaTable table = Tables.table();
        Lease lease = new Lease(() -> now[0], table::fallback);
        StandardGauges.add(gauges, table, new Inbox(), lease, new TopicQuotas(), () -> 0);
        ObjectName factor = new ObjectName("quotahost:type=Factor");
        for (String action : List.of("PAUSE", "OPEN")) {
            lease.configure(60_000, action);
            gauges.set("Factor", "", "LackOfData", 0);
            now[0] += 120_000_000_000L;
            lease.check();
            assertEquals(action.equals("PAUSE") ? 1.0 : 0.0, server.getAttribute(factor, "LackOfData"), action);

            lease.renew();
            lease.check();
            assertEquals(0.0, server.getAttribute(factor, "LackOfData"), "the host answers again");
        }
    }
}
