package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.quotahost.fence.FenceFixture.bytesPerCall;
import static org.quotahost.table.Tables.FETCH;

import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.junit.jupiter.api.Test;
import org.quotahost.fence.Exemptions;
import org.quotahost.inbox.Inbox;

/** Tests that request threads allocate nothing on a hit, nor for a newcomer that waits for its answer. */
class AllocationTest {
    private static final KafkaPrincipal ALICE = Tables.principal("alice");

    private final QuotaTable table = Tables.table();
    private Object last;

    /** Kafka asks for the limit of FETCH with each fetch, and for other limits when they have changed. */
    @Test
    void aHitOfAnyTypeAndScope() {
        for (int code : new int[] {Scopes.CLIENT, Scopes.USER, Scopes.ALL}) {
            Tables.publish(table, "alice", "app", code, 1_000);
            for (int type = 0; type < QuotaTable.TYPES; type++) {
                int of = type;
                assertEquals(0, bytesPerCall(() -> {
                    Map<String, String> tags = table.tags(of, ALICE, "app");
                    if (table.factorInForce.generation(of) >= 0) last = of == FETCH ? table.limit(of, tags) : tags;
                }));
            }
        }
    }

    /** Kafka 4.0 and 4.1 pass a copy with each fetch. */
    @Test
    void kafkasCopyOfTheTags() {
        Tables.publish(table, "alice", "app", Scopes.CLIENT, 1_000);
        Map<String, String> copy = new HashMap<>(Tables.tags(table, "alice", "app"));

        assertEquals(0, bytesPerCall(() -> last = table.limit(FETCH, copy)));
    }

    @Test
    void aFullTable() {
        QuotaTable full = Tables.table(new Inbox(), 0, 3_600);

        assertEquals(0, bytesPerCall(() -> last = full.tags(0, ALICE, "app")));
    }

    @Test
    void aClientThatIsExemptAndOneOfAnonymousWhereOthersAreExemptByTheirClientIds() {
        Exemptions.set(Map.of("root", "excluded"), new String[] {"4"}, "broker-#-*|quotahost-#");
        KafkaPrincipal root = Tables.principal("root");
        try {
            Tables.publishWhole(table, "ANONYMOUS", "app", Scopes.USER, 1_000);
            assertEquals(0, bytesPerCall(() -> last = table.tags(0, KafkaPrincipal.ANONYMOUS, "another")));
            assertEquals(0, bytesPerCall(() -> last = table.tags(0, KafkaPrincipal.ANONYMOUS, "broker-1-a")));
            assertEquals(0, bytesPerCall(() -> last = table.tags(0, root, "app")));
        } finally {
            Exemptions.set(Map.of(), new String[0], "");
        }
    }

    @Test
    void theMeasureItselfSeesAnAllocation() {
        assertEquals(24, bytesPerCall(() -> last = new long[1]));
    }
}
