package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.DoubleRange;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import org.junit.jupiter.api.Test;
import org.quotahost.Proves;
import org.quotahost.table.Tap.Windows;

/** How quickly limits follow a factor, and that no step mutes for too long. */
class TapTest {
    private static final int BEAT = 200;
    private static final int MUTE = 30_000;
    private long now = -1_000;

    private final Tap tap = new Tap();
    private Windows windows = windows(11);

    private static Windows windows(int number) {
        return new Windows(number, 1_000, MUTE);
    }

    /** Goes on in beats for so long; answers how many steps there were. */
    private int go(double factor, boolean held, int ms) {
        int steps = 0;
        for (long end = now + ms; now < end; now += BEAT) if (tap.step(windows, factor, held, now)) steps++;
        return steps;
    }

    @Test
    void itIsAtTheFactorOnceTheMeanIs() {
        windows = windows(2);
        go(0.4, false, 1_000);
        assertTrue(tap.value() > 0.4);

        go(0.4, false, 2_000);

        assertEquals(0.4, tap.value());
    }

    @Test
    void afterAPauseItBeginsWithTheShareOfOneWindowAndIsOpenWhenTheWindowsAreFull() {
        windows = windows(2);
        go(0, true, 10_000);
        assertEquals(0.5, tap.value());

        assertEquals(0, go(1, false, 1_400)); // clients try again, and the rise is where it began
        go(1, false, 600);
        assertTrue(tap.value() > 0.6 && tap.value() < 1);

        go(1, false, 600);
        assertEquals(1, tap.value());
    }

    @Test
    void aPauseThatIsHeldRaisesNothing() {
        windows = windows(2);
        go(0.1, false, 20_000);

        go(0, true, 10_000);

        assertEquals(0.1, tap.value());
    }

    @Test
    void aMomentsPauseTakesAMomentsQuota() {
        go(0, true, 1_000);

        go(1, false, 4_000);

        assertEquals(1 - 1_750 / 11_500.0, tap.value(), 0.02);
    }

    @Test
    void aFactorOfNothingIsReachedInTheEnd() {
        go(0, false, 12 * 12_000);

        assertEquals(0, tap.value());
    }

    @Test
    void aFullWayDownAndUpTakesFewStepsAndThenNone() {
        assertTrue(go(0.1, false, 60_000) <= 75);
        assertTrue(go(1, false, 60_000) <= 75);
        assertEquals(0, go(1, false, 60_000));
    }

    @Test
    void oneWindowLeavesNothingToRiseThrough() {
        assertEquals(1, windows(1).rise(0));
        assertEquals(0.5, windows(2).rise(0));
        assertEquals(0.8, windows(2).rise(1_200));
        assertEquals(1, windows(2).rise(1_500));
    }

    /** The throttle time of a client at its bound is (rate - bound) / bound x window: never above max.mute. */
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
