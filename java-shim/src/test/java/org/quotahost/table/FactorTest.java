package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.quotahost.table.Tables.FETCH;
import static org.quotahost.table.Tables.PRODUCE;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.DoubleRange;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import net.jqwik.api.lifecycle.AfterTry;
import net.jqwik.api.lifecycle.BeforeTry;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.quotahost.Proves;
import org.quotahost.QuotaFence;
import org.quotahost.fence.Fence;
import org.quotahost.fence.FenceFixture;
import org.quotahost.table.Tap.Windows;

/** Tests how a factor changes limits: with and without a fence, in shadow, for single quota types; and how quickly. */
class FactorTest {
    private static final double FLOOR = 10;
    private static final int REQUEST = ClientQuotaType.REQUEST.ordinal();
    private static final String[] NO_CAUSES = {"", "", "", ""};

    private QuotaTable table;

    @AfterEach
    @AfterTry
    void reset() {
        FenceFixture.reset();
    }

    @BeforeEach
    @BeforeTry // jqwik's tries share this object
    void alice() {
        table = Tables.table();
        Tables.publish(table, "alice", "app", Scopes.CLIENT, 1_000);
    }

    private Double limit(int type) {
        return Tables.limit(table, type, "alice", "app");
    }

    /** If the table throws, Kafka gets no limit, and would keep that in the sensor until the next change of limits. */
    @Test
    void aLimitThatTheFullHeapPreventedIsAskedForAgainASecondLater() {
        Map<String, String> full = new HashMap<>() {
            @Override
            public String get(Object key) {
                throw new OutOfMemoryError();
            }
        };
        table.beat(3_000);
        int produce = table.factorInForce.generation(PRODUCE), fetch = table.factorInForce.generation(FETCH);
        assertThrows(OutOfMemoryError.class, () -> table.limit(PRODUCE, full));

        assertEquals(produce, table.factorInForce.generation(PRODUCE));
        table.beat(4_200);
        assertEquals(produce + 1, table.factorInForce.generation(PRODUCE));
        assertEquals(fetch, table.factorInForce.generation(FETCH));
    }

    @Proves("proposal-035.pause")
    @Test
    void whileItIsClosedTheProduceLimitStaysWhereItWas() {
        FenceFixture.fence("none", Map.of());
        table.factor(0.2, "", null);
        int generation = table.factorInForce.generation(PRODUCE);

        table.factor(0, "", null);
        assertEquals(200.0, limit(PRODUCE));
        assertEquals(generation, table.factorInForce.generation(PRODUCE));
        table.factor(1, "", null);
        assertEquals(1_000.0, limit(PRODUCE));
    }

    @Test
    void theUnlimitedAreOpenAgainOnceAFenceTakesThePauseOver() {
        table.configureTap(2, 1_000, 30_000);
        Tables.publish(table, "alice", "app", Scopes.CLIENT, Double.NaN);
        table.factor(0, "", null);
        for (long ms = 0; table.factorInForce.limitFactor() == 1; ms += QuotaTable.BEAT_MS) table.beat(ms);

        FenceFixture.fence("none", Map.of());
        table.beat(0);

        assertTrue(Fence.closed());
        assertNull(limit(PRODUCE));
    }

    @Test
    void afterAPauseThoseWithAQuotaRiseAndTheUnlimitedHaveNothingToRiseTo() {
        table.configureTap(2, 1_000, 30_000);
        FenceFixture.fence("none", Map.of());
        Tables.publish(table, "bob", "app", Scopes.CLIENT, Double.NaN);
        table.factor(0, "", null);
        for (long ms = 0; table.factorInForce.limitFactor() == 1; ms += QuotaTable.BEAT_MS) table.beat(ms);

        assertTrue(limit(PRODUCE) < 1_000);
        assertNull(Tables.limit(table, PRODUCE, "bob", "app"));
        table.factor(1, "", null);
        assertTrue(limit(PRODUCE) < 1_000);
        assertNull(Tables.limit(table, PRODUCE, "bob", "app"));
    }

    @Test
    void otherTypesThatTheFactorMultipliesGoToTheirFloor() {
        Tables.configure(table, FLOOR, "PRODUCE", "FETCH");
        FenceFixture.fence("none", Map.of());

        table.factor(0, "", null);

        assertEquals(1_000.0, limit(PRODUCE));
        assertEquals(FLOOR, limit(FETCH));
    }

    @Proves("proposal-035.pause")
    @Test
    void withoutAFenceAPauseIsTheFloor() {
        table.factor(0, "", null);

        assertFalse(Fence.closed());
        assertEquals(FLOOR, limit(PRODUCE));
    }

    @Test
    void itStaysOpenIfTheFactorDoesNotMultiplyProduceRates() {
        Tables.configure(table, FLOOR, "FETCH");
        FenceFixture.fence("none", Map.of());

        table.factor(0, "", null);

        assertFalse(Fence.closed());
        Tables.affect(table, 0, "held");
        assertFalse(Fence.closed());
    }

    // ---- shadow=factor: it is shown, and nobody is slowed or turned back by it ----

    private void shadow(String... rules) {
        Tables.shadow(table, rules);
    }

    @Property(tries = 100)
    void eachRuleInShadowLeavesTheOthersInForce(@ForAll boolean everything, @ForAll boolean factorInShadow,
            @ForAll @DoubleRange(min = 0, max = 1) double factor, @ForAll @DoubleRange(min = 20, max = 1e6) double quota) {
        Tables.publish(table, "alice", "app", Scopes.CLIENT, quota);
        table.factor(factor, "", null);
        shadow(everything ? new String[] {"all", "factor", "topics"} : factorInShadow ? new String[] {"factor"} : new String[] {"topics"});
        Double wanted = everything ? null : factorInShadow ? quota : Math.max(10, quota * factor);
        assertEquals(wanted, limit(PRODUCE));
        assertEquals(everything || factorInShadow, Fence.inShadow());
        assertEquals(factor, table.factorInForce.value());
        assertEquals(everything || factorInShadow ? 1 : factor, table.factorInForce.limitFactor());

        shadow();
        assertEquals(factor >= 1 ? quota : Math.max(10, quota * factor), limit(PRODUCE));
    }

    @Test
    void onceItIsInForceLimitsComeDownStepByStepAsFromOne() {
        table.configureTap(11, 1_000, 2_000);
        Tables.publish(table, "alice", "app", Scopes.CLIENT, 1_000);
        shadow("factor");
        table.factor(0.1, "", null);
        assertEquals(1_000.0, limit(PRODUCE));

        shadow();

        assertTrue(limit(PRODUCE) > 100, "no step delays for longer than max.mute");
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
        assertEquals(1_000.0, limit(PRODUCE));
        assertEquals(1, table.marked());

        shadow();
        assertEquals("<slowed alice>", Tables.tags(table, "alice", "app").get("user"));
        assertEquals(500.0, limit(PRODUCE));

        shadow("factor");
        assertEquals("alice", Tables.tags(table, "alice", "app").get("user"));
    }

    // ---- for single quota types: it goes with the other one, and is never a PAUSE ----

    private void ofTypes(double produce, double fetch) {
        table.factorsOfTypes(new double[] {produce, fetch, 1, 1}, NO_CAUSES);
    }

    @Property(tries = 50)
    void theSmallerHoldsForItsTypeWhateverTheOtherMultiplies(@ForAll @DoubleRange(min = 0.05, max = 1) double volumes,
            @ForAll @DoubleRange(min = 0.05, max = 1) double produce, @ForAll @DoubleRange(min = 0.05, max = 1) double fetch) {
        Tables.publish(table, "alice", "app", Scopes.CLIENT, 1e6);
        table.factor(volumes, "", null); // this factor multiplies only PRODUCE
        ofTypes(produce, fetch);
        assertEquals(Math.min(volumes, produce) * 1e6, limit(PRODUCE), 1e-3);
        assertEquals(fetch * 1e6, limit(FETCH), 1e-3);
        assertEquals(1e6, limit(REQUEST));
        assertEquals(volumes, table.factorInForce.value());
        assertFalse(Fence.closed());
        ofTypes(1, 1);
        table.factor(1, "", null);
        assertEquals(1e6, limit(PRODUCE));
        assertEquals(1e6, limit(FETCH));
    }

    @Test
    void itIsNothingInShadow() {
        Tables.publish(table, "alice", "app", Scopes.CLIENT, 1e6);
        Tables.shadow(table, "factor");
        ofTypes(0.1, 0.1);
        assertEquals(1e6, limit(PRODUCE));
        assertEquals(1e6, limit(FETCH));
    }

    @Test
    void aSilentHostsFactorsEnd() {
        ofTypes(0.1, 0.1);
        table.fallback(1.0);
        assertEquals(1, table.factorInForce.ofType(PRODUCE).value());
    }

    // ---- the tap: how quickly limits follow a factor, and that no step mutes for too long ----

    private static final int BEAT = 200;
    private static final int MUTE = 30_000;
    private long now = -1_000;

    private final Tap tap = new Tap();

    private static Windows windows(int number) {
        return new Windows(number, 1_000, MUTE);
    }

    /** Goes on in beats for this time. Returns the number of steps. */
    private int go(double factor, int ms) {
        int steps = 0;
        for (long end = now + ms; now < end; now += BEAT) if (tap.step(windows(11), factor, false, now)) steps++;
        return steps;
    }

    @Test
    void aFactorOfNothingIsReachedInTheEnd() {
        go(0, 12 * 12_000);

        assertEquals(0, tap.value());
    }

    @Test
    void aFullWayDownAndUpTakesFewStepsAndThenNone() {
        assertTrue(go(0.1, 60_000) <= 75);
        assertTrue(go(1, 60_000) <= 75);
        assertEquals(0, go(1, 60_000));
    }

    /** The throttle time of a client at its bound is (rate - bound) / bound x window, and must never exceed max.mute. */
    @Proves("proposal-035.steps")
    @Property
    void noStepMutesForLongerThanAllowed(@ForAll @Size(max = 60) List<@DoubleRange(min = 0.01, max = 1) Double> targets,
            @ForAll @IntRange(min = 100, max = 3_000) int everyMs, @ForAll @IntRange(min = 1, max = 12) int number) {
        Tap other = new Tap();
        int kafkaMs = (number + 1) * 1_000;
        double[] past = new double[targets.size()];
        for (int i = 0; i < past.length; i++) {
            other.step(windows(number), targets.get(i), false, (long) i * everyMs);
            past[i] = other.value();
            double rate = (i + 1) * everyMs > kafkaMs ? 0 : 1;
            for (int j = i; j >= 0 && (i - j) * everyMs < kafkaMs; j--) rate = Math.max(rate, past[j]);
            double mute = (rate - past[i]) / past[i] * kafkaMs;
            assertTrue(mute <= MUTE + 1e-3, "mute of " + mute + " ms at step " + i);
        }
    }
}
