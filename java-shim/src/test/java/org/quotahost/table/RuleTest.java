package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Map;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.DoubleRange;
import net.jqwik.api.constraints.IntRange;
import org.quotahost.table.Rule.Course;

/** The limit that Kafka gets for a base rate, for every rate that a double can be. */
class RuleTest {
    private static final double[] FLOORS = {35_000, 35_000, 1, 0.1};
    private static final double NONE = Double.NaN;

    private static Rule rule(double factor, boolean factored, boolean shadow, double newcomers) {
        Course[] all = new Course[QuotaTable.TYPES];
        for (int type = 0; type < all.length; type++) {
            all[type] = factored ? new Course(factor, factor, factor >= 1, FLOORS[type]) : Course.NONE;
        }
        double[] rates = new double[QuotaTable.TYPES];
        Arrays.fill(rates, newcomers);
        return new Rule(all, Map.of(), null, shadow, rates, new Tap.Windows(11, 1_000, 30_000), 0);
    }

    private static Double limit(Rule rule, int type, double base, double standIn, boolean exempt) {
        Scope scope = new Scope("alice", "app", exempt);
        scope.base(type, base);
        if (!Double.isNaN(standIn)) scope.standIn(type, standIn);
        return rule.limit(scope.own, type);
    }

    @Property
    void theLimitIsFiniteAboveNothingAndBetweenFloorAndBase(@ForAll("rates") double base,
            @ForAll @DoubleRange(max = 1) double factor, @ForAll @DoubleRange(max = 1) double lower, @ForAll @IntRange(max = 3) int type) {
        Double limit = limit(rule(factor, true, false, NONE), type, base, NONE, false);

        assertTrue(limit > 0 && Double.isFinite(limit), () -> "limit " + limit);
        assertTrue(limit <= base);
        assertTrue(limit >= Math.min(base, FLOORS[type]));
        assertTrue(limit >= base * factor);
        Double less = limit(rule(Math.min(factor, lower), true, false, NONE), type, base, NONE, false);
        assertTrue(less <= limit, "a smaller factor never gives more");
    }

    @Property
    void aFactorOfOneOrATypeWithoutOneLeavesTheBase(@ForAll("rates") double base, @ForAll @DoubleRange(max = 1) double factor,
            @ForAll @IntRange(max = 3) int type) {
        assertEquals(base, limit(rule(1, true, false, NONE), type, base, NONE, false));
        assertEquals(base, limit(rule(factor, false, false, NONE), type, base, NONE, false));
    }

    @Property
    void theExemptAndShadowAreNeverLimited(@ForAll("rates") double base, @ForAll @DoubleRange(max = 1) double factor,
            @ForAll @IntRange(max = 3) int type) {
        assertNull(limit(rule(factor, true, false, NONE), type, base, NONE, true));
        assertNull(limit(rule(factor, true, false, NONE), type, NONE, NONE, true));
        assertNull(limit(rule(factor, true, true, NONE), type, base, NONE, false));
    }

    @Property
    void whoHasNoQuotaIsSlowedByWhatItWasMeasuredToUseOrElseByTheNewcomersRate(@ForAll("rates") double rate,
            @ForAll @DoubleRange(min = 0.01, max = 0.99) double factor, @ForAll @IntRange(max = 1) int type) {
        double expected = Math.max(Math.min(rate, FLOORS[type]), rate * factor);
        assertEquals(expected, limit(rule(factor, true, false, 7), type, NONE, rate, false));
        assertEquals(expected, limit(rule(factor, true, false, rate), type, NONE, NONE, false));
        assertNull(limit(rule(1, true, false, rate), type, NONE, rate, false));
    }

    @Example
    void withNeitherItIsUnlimitedUntilTheFactorIsNothing() {
        for (int type = 0; type < QuotaTable.TYPES; type++) {
            assertNull(limit(rule(1, true, false, NONE), type, NONE, NONE, false));
            assertNull(limit(rule(0.01, true, false, NONE), type, NONE, NONE, false));
            assertEquals(FLOORS[type], limit(rule(0, true, false, NONE), type, NONE, NONE, false));
        }
    }

    @Provide
    Arbitrary<Double> rates() {
        Arbitrary<Double> anywhere = Arbitraries.integers().between(-320, 308).map(exponent -> Math.pow(10, exponent));
        Arbitrary<Double> likely = Arbitraries.doubles().between(0.000001, 1e9).ofScale(6);
        return Arbitraries.oneOf(anywhere, likely, Arbitraries.of(Double.MIN_VALUE, Double.MAX_VALUE, 34_999.99, 35_000.0));
    }
}
