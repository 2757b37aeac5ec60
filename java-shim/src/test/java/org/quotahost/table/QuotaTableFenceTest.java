package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.quotahost.Proves;
import org.quotahost.fence.Fence;
import org.quotahost.fence.FenceFixture;

/** If there is a fence, the table closes it for a PAUSE instead of lowering the produce limits. */
@ExtendWith(FenceFixture.Reset.class)
class QuotaTableFenceTest {
    private static final double FLOOR = 10;

    private final QuotaTable table = Tables.table();

    @BeforeEach
    void alice() {
        Tables.publish(table, "alice", "app", Scopes.CLIENT, 1_000);
    }

    private Double limit(int type) {
        return Tables.limit(table, type, "alice", "app");
    }

    @Test
    void aFactorOfNothingClosesItAndAnyOtherOpensIt() {
        FenceFixture.fence("none", Map.of());
        for (double factor : new double[] {0, 0.01, 0, 1, 0, 0.5}) {
            table.factor(factor, "", null);
            assertEquals(factor == 0, Fence.closed(), "factor " + factor);
        }
        table.fallback(0.0);
        assertTrue(Fence.closed());
        table.fallback(null);
        assertFalse(Fence.closed());
    }

    @Proves("proposal-035.pause")
    @Test
    void whileItIsClosedTheProduceLimitStaysWhereItWas() {
        FenceFixture.fence("none", Map.of());
        table.factor(0.2, "", null);
        int generation = table.generation(Tables.PRODUCE);

        table.factor(0, "", null);
        assertEquals(200.0, limit(Tables.PRODUCE));
        assertEquals(generation, table.generation(Tables.PRODUCE));
        table.factor(1, "", null);
        assertEquals(1_000.0, limit(Tables.PRODUCE));
    }

    @Test
    void theUnlimitedAreOpenAgainOnceAFenceTakesThePauseOver() {
        table.configureTap(2, 1_000, 30_000);
        Tables.publish(table, "alice", "app", Scopes.CLIENT, Double.NaN);
        table.factor(0, "", null);
        while (table.factorInForce.limitFactor() == 1) table.beat(0);

        FenceFixture.fence("none", Map.of());
        table.beat(0);

        assertNull(limit(Tables.PRODUCE));
    }

    @Test
    void afterAPauseThoseWithAQuotaRiseAndTheUnlimitedHaveNothingToRiseTo() {
        table.configureTap(2, 1_000, 30_000);
        FenceFixture.fence("none", Map.of());
        Tables.publish(table, "bob", "app", Scopes.CLIENT, Double.NaN);
        table.factor(0, "", null);
        while (table.factorInForce.limitFactor() == 1) table.beat(0);

        assertTrue(limit(Tables.PRODUCE) < 1_000);
        assertNull(Tables.limit(table, Tables.PRODUCE, "bob", "app"));
        table.factor(1, "", null);
        assertTrue(limit(Tables.PRODUCE) < 1_000);
        assertNull(Tables.limit(table, Tables.PRODUCE, "bob", "app"));
    }

    @Test
    void otherTypesThatTheFactorMultipliesGoToTheirFloor() {
        Tables.configure(table, FLOOR, "PRODUCE", "FETCH");
        FenceFixture.fence("none", Map.of());

        table.factor(0, "", null);

        assertEquals(1_000.0, limit(Tables.PRODUCE));
        assertEquals(FLOOR, limit(Tables.FETCH));
    }

    @Proves("proposal-035.pause")
    @Test
    void withoutAFenceAPauseIsTheFloor() {
        table.factor(0, "", null);

        assertFalse(Fence.closed());
        assertEquals(FLOOR, limit(Tables.PRODUCE));
    }

    @Test
    void aFenceThatComesLaterTakesThePauseOver() {
        table.factor(0.5, "", null);
        table.factor(0, "", null);
        assertEquals(FLOOR, limit(Tables.PRODUCE));

        FenceFixture.fence("none", Map.of());
        table.beat(0);

        assertTrue(Fence.closed());
        assertEquals(FLOOR, limit(Tables.PRODUCE));
        table.factor(1, "", null);
        assertEquals(1_000.0, limit(Tables.PRODUCE));
    }

    @Test
    void itStaysOpenIfTheFactorDoesNotMultiplyProduceRates() {
        Tables.configure(table, FLOOR, "FETCH");
        FenceFixture.fence("none", Map.of());

        table.factor(0, "", null);

        assertFalse(Fence.closed());
    }
}
