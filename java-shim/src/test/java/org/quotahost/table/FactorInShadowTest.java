package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.quotahost.table.Tables.PRODUCE;

import java.util.List;
import java.util.Map;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.DoubleRange;
import net.jqwik.api.lifecycle.AfterTry;
import org.apache.kafka.common.protocol.ApiKeys;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.quotahost.QuotaFence;
import org.quotahost.fence.Fence;
import org.quotahost.fence.FenceFixture;

/** shadow=factor: the factor is shown, and nobody is slowed or turned back by it; quotas stay in force. */
class FactorInShadowTest {
    private final QuotaTable table = Tables.table();

    @AfterEach
    @AfterTry
    void reset() {
        FenceFixture.reset();
    }

    private Double limit(String principal) {
        return Tables.limit(table, PRODUCE, principal, "app");
    }

    private void shadow(String... rules) {
        table.shadow(List.of(rules));
    }

    @Property(tries = 100)
    void eachRuleInShadowLeavesTheOthersInForce(@ForAll boolean everything, @ForAll boolean factorInShadow,
            @ForAll @DoubleRange(min = 0, max = 1) double factor, @ForAll @DoubleRange(min = 20, max = 1e6) double quota) {
        Tables.publish(table, "alice", "app", Scopes.CLIENT, quota);
        table.factor(factor, "", null);
        shadow(everything ? new String[] {"all", "factor", "topics"} : factorInShadow ? new String[] {"factor"} : new String[] {"topics"});
        Double wanted = everything ? null : factorInShadow ? quota : Math.max(10, quota * factor);
        assertEquals(wanted, limit("alice"));
        assertEquals(everything || factorInShadow, Fence.inShadow());
        assertEquals(factor, table.factorInForce.value());
        assertEquals(everything || factorInShadow ? 1 : factor, table.factorInForce.limitFactor());

        shadow();
        assertEquals(factor >= 1 ? quota : Math.max(10, quota * factor), limit("alice"));
    }

    @Test
    void onceItIsInForceLimitsComeDownStepByStepAsFromOne() {
        table.configureTap(11, 1_000, 2_000);
        Tables.publish(table, "alice", "app", Scopes.CLIENT, 1_000);
        shadow("factor");
        table.factor(0.1, "", null);
        assertEquals(1_000.0, limit("alice"));

        shadow();

        assertTrue(limit("alice") > 100, "no step delays for longer than max.mute");
        assertEquals(0.1, table.factorInForce.value());
    }

    @Test
    void whoWritesToAffectedTopicsIsMarkedAndKeepsItsTags() {
        QuotaFence fence = FenceFixture.fence("none", Map.of());
        Tables.publish(table, "alice", "app", Scopes.USER, 1_000);
        shadow("factor");
        Tables.affect(table, 0.5, "orders");
        fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, "alice", "app"), FenceFixture.write("orders"));

        assertEquals("alice", Tables.tags(table, "alice", "app").get("user"));
        assertEquals(1_000.0, limit("alice"));
        assertEquals(2, table.marked(), "a principal and its client");

        shadow();
        assertEquals("<slowed alice>", Tables.tags(table, "alice", "app").get("user"));
        assertEquals(500.0, limit("alice"));

        shadow("factor");
        assertEquals("alice", Tables.tags(table, "alice", "app").get("user"));
    }
}
