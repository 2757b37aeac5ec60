package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.quotahost.table.Tables.FETCH;
import static org.quotahost.table.Tables.PRODUCE;
import static org.quotahost.table.Tables.publish;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.quotahost.fence.FenceFixture;
import org.quotahost.inbox.Inbox;
import org.quotahost.inbox.Inbox.Batch;
import org.quotahost.table.Answer.Quota;

/** quotaResetRequired makes Kafka look at every metric of the broker, so it must be true if necessary, and only then. */
class QuotaTableGenerationTest {
    private final QuotaTable table = Tables.table(new Inbox(), 100_000, 3_600);

    private boolean resets(int type, Runnable action) {
        int before = table.factorInForce.generation(type);
        action.run();
        return table.factorInForce.generation(type) != before;
    }

    @Test
    void newClientsAreNoReasonForAResetHoweverManyThereAre() {
        int before = table.factorInForce.generation(PRODUCE);
        for (int i = 0; i < 1_000; i++) publish(table, "w" + i, "c" + i, Scopes.CLIENT, 1_000 + i);
        for (int i = 0; i < 1_000; i++) publish(table, "x" + i, "", Scopes.USER, 1_000 + i);
        assertEquals(before, table.factorInForce.generation(PRODUCE));
    }

    @Test
    void theSameFactorFallbackOrSettingsAreNoReasonForAReset() {
        publish(table, "alice", "a", Scopes.CLIENT, 1_000);
        Tables.tags(table, PRODUCE, "alice", "a");
        assertFalse(resets(FETCH, () -> table.factor(0.5, "", null)), "the factor is of another type");

        assertFalse(resets(PRODUCE, () -> publish(table, "alice", "a", Scopes.CLIENT, 1_000)));
        assertFalse(resets(PRODUCE, () -> table.factor(0.5, "", null)));
        assertFalse(resets(PRODUCE, () -> table.fallback(0.5)));
        assertFalse(resets(PRODUCE, () -> table.fallback(null)));
        assertFalse(resets(PRODUCE, () -> table.configure(100_000, 3_600, 10, new String[] {"PRODUCE"}, Tables.NEWCOMERS, Tables.ALL)));
    }

    /** Limits rise at once to their share of a higher factor, and fall only with the tap, whose first step needs some time. */
    @Test
    void aSomewhatLowerFactorIsNoReasonForAResetUntilLimitsMove() {
        table.configureTap(11, 1_000, 30_000);
        table.factor(0.5, "", null);
        for (int ms = 0; ms < 60_000; ms += 200) table.beat(ms);

        assertFalse(resets(PRODUCE, () -> table.factor(0.4, "", null)));
        assertTrue(resets(PRODUCE, () -> table.beat(63_000)));
    }

    @Test
    void aBudgetIsAReasonForAResetOfTheMultipliedTypesAlone() throws Exception {
        try (var fence = FenceFixture.fence("none", Map.of())) {
            int fetch = table.factorInForce.generation(FETCH);
            assertTrue(resets(PRODUCE, () -> table.budgets(List.of(Tables.budget("team", 0.5, "orders")))));
            assertTrue(resets(PRODUCE, () -> table.budgets(List.of())));
            assertEquals(fetch, table.factorInForce.generation(FETCH));
        } finally {
            FenceFixture.reset();
        }
    }

    @Test
    void anotherFloorShadowOrNewcomersRateIsAReasonForAReset() {
        table.factor(0, "", null);
        double[] other = {200, 100, 100, 100};

        assertTrue(resets(PRODUCE, () -> Tables.configure(table, 20, "PRODUCE")));
        assertTrue(resets(FETCH, () -> Tables.shadow(table, "all", "factor", "topics")));
        assertTrue(resets(FETCH, () -> Tables.shadow(table)));
        assertTrue(resets(FETCH, () -> Tables.configure(table, 20, "FETCH")));
        assertTrue(resets(PRODUCE, () -> table.configure(100, 3_600, 20, new String[] {"FETCH"}, other, Tables.ALL)));
    }

    @Test
    void theEndOfAQuotaIsAReasonForAResetAndAnotherScopeIsNone() {
        publish(table, "alice", "a", Scopes.CLIENT, 1_000);
        Tables.tags(table, PRODUCE, "alice", "a");

        assertTrue(resets(PRODUCE, () -> publish(table, "alice", "a", Scopes.CLIENT, Double.NaN)));
        assertTrue(resets(PRODUCE, () -> publish(table, "alice", "a", Scopes.CLIENT, 1_000)));
        assertFalse(resets(PRODUCE, () -> publish(table, "alice", "a", Scopes.USER, 500)), "Kafka sees other tags");
    }

    /** For example, the heap was full. The next host gives the same answers, which are no change by then. */
    @Test
    void whatWasStoredOfABatchThatFailedIsAReasonForAReset() {
        publish(table, "alice", "a", Scopes.CLIENT, 1_000);
        Tables.tags(table, PRODUCE, "alice", "a");
        Batch.Lookup alice = new Batch.Lookup("alice", "a", 0), bob = new Batch.Lookup("bob", "b", 0);
        Quota[] quotas = {new Quota(Scopes.CLIENT, 500, "", ""), new Quota(Scopes.CLIENT, 500, "", ""),
                new Quota(Scopes.CLIENT, 500, "", ""), new Quota(Scopes.CLIENT, 500, "", "")};
        var answers = List.of(new Answer(quotas, false, Set.of(), ""));

        assertTrue(resets(PRODUCE, () -> assertThrows(IndexOutOfBoundsException.class,
                () -> table.publish(new Batch(List.of(alice, bob), List.of()), new int[] {0, 1}, answers))));
    }

    @Test
    void whatWasTakenOverOfSettingsThatFailedIsAReasonForAReset() {
        assertTrue(resets(PRODUCE, () -> assertThrows(IndexOutOfBoundsException.class,
                () -> table.configure(100, 3_600, 10, new String[0], new double[] {200}, Tables.ALL))));
    }

    /** Two request threads may read limits at the same time, and the older value may be written last. */
    @Test
    void aSecondAfterAChangeKafkaReadsOnceMore() {
        table.factor(0.6, "", null);
        for (int ms = 0; ms < 2_000; ms += 200) table.beat(ms);
        table.factor(0.5, "", null);
        int changed = table.factorInForce.generation(PRODUCE);
        int fetch = table.factorInForce.generation(FETCH);
        for (int ms = 2_000; ms < 2_800; ms += 200) table.beat(ms);
        assertEquals(changed, table.factorInForce.generation(PRODUCE));

        for (int ms = 2_800; ms < 8_000; ms += 200) table.beat(ms);

        assertEquals(changed + 1, table.factorInForce.generation(PRODUCE));
        assertEquals(fetch, table.factorInForce.generation(FETCH));
    }

    /** Kafka may still have a sensor for these clients. */
    @Test
    void newClientsAreAReasonWhereTheTableForgetsThemBeforeKafkaDoes() {
        table.configure(100, 1_800, 10, new String[] {"PRODUCE"}, Tables.NEWCOMERS, Tables.ALL);

        assertTrue(resets(PRODUCE, () -> publish(table, "alice", "a", Scopes.CLIENT, Double.NaN)));
    }
}
