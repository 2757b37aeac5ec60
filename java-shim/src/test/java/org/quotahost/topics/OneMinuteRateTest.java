package org.quotahost.topics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import net.jqwik.api.lifecycle.BeforeTry;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.quotahost.Proves;
import org.quotahost.topics.TopicUse.OneMinuteRate;

/** Tests that the one-minute rate of Kafka's meter is known before the meter itself ticks. */
class OneMinuteRateTest {
    private static final double DECAY = Math.exp(-5 / 60.0);

    private SimulatedMeters meters = new SimulatedMeters();

    @BeforeTry // jqwik's tries share this object
    void newMeters() {
        meters = new SimulatedMeters();
    }

    private double update(OneMinuteRate rate) {
        rate.update(meters.total(), meters.nanos());
        return rate.rate;
    }

    private double pass(OneMinuteRate rate, long ms, long bytesEach100) {
        double last = 0;
        for (long t = 0; t < ms; t += 100) {
            meters.append("t", bytesEach100);
            meters.sleep(100);
            last = update(rate);
        }
        return last;
    }

    @Proves("v1.one-minute-rate")
    @Property(tries = 100)
    void atEachTickItIsYammersButForATwelfthOfTheLastFiveSeconds(
            @ForAll @Size(min = 1, max = 60) List<@IntRange(max = 10_000) Integer> bytesEach100) {
        OneMinuteRate rate = new OneMinuteRate();
        update(rate);
        double tolerance = 0;
        for (int each : bytesEach100) {
            double ours = pass(rate, 5_000, each);
            tolerance = DECAY * tolerance + (1 - DECAY) * (1 - DECAY) * 10 * each + 1e-6;
            assertEquals(meters.rate(""), ours, tolerance);
        }
    }

    @Test
    void aBurstWithinATickShowsAtOnceAndDiffersByLessThanATwelfth() {
        OneMinuteRate rate = new OneMinuteRate();
        pass(rate, 60_000, 0);
        double before = pass(rate, 100, 60_000);
        assertEquals(1_000, before, 10);
        double ours = pass(rate, 4_900, 0);
        double yammers = meters.rate("");
        assertTrue(Math.abs(ours - yammers) <= yammers / 12, ours + " and " + yammers);
    }

    @Test
    void inItsFirstFiveSecondsAMeterHasTheRateThatItsFirstTickSets() {
        OneMinuteRate rate = new OneMinuteRate();
        assertEquals(40, pass(rate, 200, 100));
        assertEquals(1_000, pass(rate, 4_800, 100), 1);
        assertEquals(1_000, meters.rate(""));
    }

    @Test
    void anOldMeterIsTakenUpWithItsOwnRateAlsoIfThatIsNothingByNow() {
        pass(new OneMinuteRate(), 300_000, 100);
        assertEquals(1_000, update(new OneMinuteRate()), 10);
        meters.sleep(100_000_000);
        assertEquals(meters.rate(""), update(new OneMinuteRate()));
    }

    /** The meter's age is known only from then on; a rate over all of it would be far too low for a minute. */
    @ParameterizedTest
    @ValueSource(ints = {5_000, 3_600_000})
    void firstBytesOfAnOldMeterAreNoBeginning(int idle) {
        meters.sleep(idle);
        OneMinuteRate rate = new OneMinuteRate();
        assertEquals(0, update(rate));
        double ours = pass(rate, 5_000, 228);
        assertEquals(meters.rate(""), ours, 1e-6);
    }

    @Test
    void aMeterThatWasMadeAnewIsTakenUpAsItIs() {
        OneMinuteRate rate = new OneMinuteRate();
        pass(rate, 20_000, 1_000);
        meters.remove("");
        meters.meter("");
        meters.append("t", 500);
        assertEquals(100, update(rate));
    }
}
