package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.quotahost.fence.Fence;
import org.quotahost.table.QuotaTable;
import org.quotahost.table.Tables;
import org.quotahost.topics.TopicQuotas;

/** The lines by which an operator sees the state that all clients share. */
class TableStateTest {
    private final QuotaTable table = Tables.table();

    @AfterEach
    void close() {
        Fence.state(false, null);
    }

    private static Map<String, String> state(QuotaTable table, Lease lease) {
        return Arrays.stream(TableState.lines(table, lease, new TopicQuotas(), "alice", "app")).map(line -> line.split("\t", -1))
                .collect(Collectors.toMap(line -> line[0], line -> line[1]));
    }

    @Test
    void theStateNamesTheFactorAndItsCauseWhichIsTheLeasesOnceItHasRunOut() {
        long[] now = {0};
        Lease lease = new Lease(() -> now[0], table.factorInForce()::fallback);
        lease.configure(1_000, "PAUSE");
        table.factor(0.5, "broker 2, volume /dev/sdb");
        var state = state(table, lease);
        assertEquals("THROTTLE 0.5 0.5 broker 2, volume /dev/sdb false", String.join(" ", state.get("state"), state.get("factor"),
                state.get("limit-factor"), state.get("cause"), state.get("fallback")));

        now[0] = 5_000_000_000L;
        lease.check();
        state = state(table, lease);
        assertEquals("PAUSE 0.0 true", String.join(" ", state.get("state"), state.get("factor"), state.get("fallback")));
        assertEquals("The Python host has been silent for 5000 ms (validity 1000 ms): fallback.action=PAUSE holds until it answers again",
                state.get("cause"));
    }

    @Test
    void theStateNamesTheFenceAndWhetherTheClientPassesIt() {
        table.exempt(new String[] {"root"}, new String[0], "");
        Fence.install();
        try {
            table.factor(0, "");
            Lease lease = new Lease(() -> 0, table.factorInForce()::fallback);
            var state = state(table, lease);
            assertEquals("true true false", String.join(" ", state.get("fence-installed"), state.get("fence-closed"), state.get("fence-passes")));
            assertEquals("1.0", state.get("limit-factor"), "the limits stay where they were");
            assertEquals("fence-passes\ttrue", TableState.lines(table, lease, new TopicQuotas(), "root", "x")[9]);
        } finally {
            Fence.uninstall();
            table.exempt(new String[0], new String[0], "");
        }
    }

    @Test
    void theFactorIsReadWithItsOwnCauseWhileTheHostSetsOthers() throws Exception {
        Lease lease = new Lease(() -> 0, table.factorInForce()::fallback);
        table.factor(0.5, "0.5");
        AtomicBoolean done = new AtomicBoolean();
        FutureTask<Void> reads = new FutureTask<>(() -> {
            while (!done.get()) {
                var state = state(table, lease);
                assertEquals(state.get("factor"), state.get("cause"));
            }
        }, null);
        new Thread(reads).start();
        for (int i = 0; i < 100_000 && !reads.isDone(); i++) table.factor(i % 2 == 0 ? 0.25 : 0.5, i % 2 == 0 ? "0.25" : "0.5");
        done.set(true);
        reads.get();
    }
}
