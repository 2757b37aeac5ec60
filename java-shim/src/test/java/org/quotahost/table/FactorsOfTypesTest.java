package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.quotahost.table.Tables.PRODUCE;

import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.DoubleRange;
import net.jqwik.api.lifecycle.AfterTry;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.quotahost.fence.Fence;
import org.quotahost.fence.FenceFixture;

/** A factor for single quota types goes with the other one, and is never a PAUSE. */
class FactorsOfTypesTest {
    private static final int FETCH = ClientQuotaType.FETCH.ordinal(), REQUEST = ClientQuotaType.REQUEST.ordinal();
    private static final String[] NO_CAUSES = {"", "", "", ""};

    private final QuotaTable table = Tables.table();

    @AfterEach
    @AfterTry
    void reset() {
        FenceFixture.reset();
    }

    private void ofTypes(double produce, double fetch) {
        table.factorsOfTypes(new double[] {produce, fetch, 1, 1}, NO_CAUSES);
    }

    @Property(tries = 50)
    void theSmallerHoldsForItsTypeWhateverTheOtherMultiplies(@ForAll @DoubleRange(min = 0.05, max = 1) double volumes,
            @ForAll @DoubleRange(min = 0.05, max = 1) double produce, @ForAll @DoubleRange(min = 0.05, max = 1) double fetch) {
        Tables.publish(table, "alice", "app", Scopes.CLIENT, 1e6);
        table.factor(volumes, "", null); // it multiplies PRODUCE alone
        ofTypes(produce, fetch);
        assertEquals(Math.min(volumes, produce) * 1e6, Tables.limit(table, PRODUCE, "alice", "app"), 1e-3);
        assertEquals(fetch * 1e6, Tables.limit(table, FETCH, "alice", "app"), 1e-3);
        assertEquals(1e6, Tables.limit(table, REQUEST, "alice", "app"));
        assertEquals(volumes, table.factorInForce.value());
        assertFalse(Fence.closed());
        ofTypes(1, 1);
        table.factor(1, "", null);
        assertEquals(1e6, Tables.limit(table, PRODUCE, "alice", "app"));
        assertEquals(1e6, Tables.limit(table, FETCH, "alice", "app"));
    }

    @Test
    void itIsNeverAPauseAndNothingInShadow() {
        assertThrows(IllegalArgumentException.class, () -> ofTypes(0, 1));
        assertThrows(IllegalArgumentException.class, () -> ofTypes(Double.NaN, 1));
        Tables.publish(table, "alice", "app", Scopes.CLIENT, 1e6);
        table.shadow(List.of("factor"));
        ofTypes(0.1, 0.1);
        assertEquals(1e6, Tables.limit(table, PRODUCE, "alice", "app"));
        assertEquals(1e6, Tables.limit(table, FETCH, "alice", "app"));
    }

    @Test
    void aSilentHostsFactorsEnd() {
        ofTypes(0.1, 0.1);
        table.fallback(1.0);
        assertEquals(1, table.factorInForce.ofType(PRODUCE).value());
    }
}
