package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Set;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.DoubleRange;
import net.jqwik.api.constraints.IntRange;
import org.apache.kafka.server.quota.ClientQuotaType;

/** The limit that Kafka gets for a base rate, for every rate that a double can be. */
class LimitRuleTest {
    private static final Set<ClientQuotaType> ALL = Set.of(ClientQuotaType.values());
    private static final double[] FLOORS = {35_000, 35_000, 1, 0.1};

    private static LimitRule rule(double factor) {
        return new LimitRule(factor, factor, 35_000, ALL, false);
    }

    @Property
    void theLimitIsFiniteAboveNothingAndBetweenFloorAndBase(@ForAll("rates") double base,
            @ForAll @DoubleRange(max = 1) double factor, @ForAll @IntRange(max = 3) int type) {
        Double limit = rule(factor).limit(type, base, Double.NaN, false);

        assertTrue(limit > 0 && Double.isFinite(limit), () -> "limit " + limit);
        assertTrue(limit <= base);
        assertTrue(limit >= Math.min(base, FLOORS[type]));
        assertTrue(limit >= base * factor);
    }

    @Property
    void aFactorOfOneOrATypeWithoutOneLeavesTheBase(@ForAll("rates") double base, @ForAll @DoubleRange(max = 1) double factor,
            @ForAll @IntRange(max = 3) int type) {
        assertEquals(base, rule(1).limit(type, base, Double.NaN, false));
        assertEquals(base, new LimitRule(factor, factor, 35_000, Set.of(), false).limit(type, base, Double.NaN, false));
    }

    @Property
    void theExemptAndShadowAreNeverLimited(@ForAll("rates") double base, @ForAll @DoubleRange(max = 1) double factor,
            @ForAll @IntRange(max = 3) int type) {
        assertNull(rule(factor).limit(type, base, Double.NaN, true));
        assertNull(rule(factor).limit(type, Double.NaN, Double.NaN, true));
        assertNull(new LimitRule(factor, factor, 35_000, ALL, true).limit(type, base, Double.NaN, false));
    }

    /** At factor 0 a fence holds the PAUSE and leaves the limits of PRODUCE: explain must not name the floor for them. */
    @Property
    void onlyALimitThatIsTheFloorIsSaidToBeTheFloor(@ForAll("rates") double base,
            @ForAll @DoubleRange(max = 1) double factor, @ForAll @DoubleRange(max = 1) double produceFactor,
            @ForAll @IntRange(max = 3) int type) {
        LimitRule rule = new LimitRule(factor, produceFactor, 35_000, ALL, false);

        if (rule.floored(type, base, Double.NaN, false)) {
            assertEquals(rule.floor(type), rule.limit(type, base, Double.NaN, false));
        }
    }

    @Example
    void aStandInIsUsedOnlyWhileTheTypesOwnFactorActs() {
        LimitRule heldByFence = new LimitRule(0, 1, 35_000, ALL, false);

        assertFalse(heldByFence.usesStandIn(0, Double.NaN, false));
        assertTrue(heldByFence.usesStandIn(1, Double.NaN, false));
    }

    @Example
    void theUnlimitedStaySoUntilTheFactorIsNothing() {
        for (int type = 0; type < Tags.TYPES; type++) {
            assertNull(rule(1).limit(type, Double.NaN, Double.NaN, false));
            assertNull(rule(0.01).limit(type, Double.NaN, Double.NaN, false));
            assertEquals(FLOORS[type], rule(0).limit(type, Double.NaN, Double.NaN, false));
        }
    }

    @Provide
    Arbitrary<Double> rates() {
        Arbitrary<Double> anywhere = Arbitraries.integers().between(-320, 308).map(exponent -> Math.pow(10, exponent));
        Arbitrary<Double> likely = Arbitraries.doubles().between(0.000001, 1e9).ofScale(6);
        return Arbitraries.oneOf(anywhere, likely, Arbitraries.of(Double.MIN_VALUE, Double.MAX_VALUE, 34_999.99, 35_000.0));
    }
}
