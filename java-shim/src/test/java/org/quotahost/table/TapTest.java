package org.quotahost.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.DoubleRange;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import org.junit.jupiter.api.Test;
import org.quotahost.Proves;

/** How quickly limits follow a factor, and that no step mutes for too long. */
class TapTest {
    private static final int BEAT = 200;
    private static final int MUTE = 30_000;
    private long now = -1_000;

    private static Tap tap(int windows) {
        Tap tap = new Tap();
        tap.configure(windows, 1_000, MUTE);
        return tap;
    }

    /** Goes on in beats for so long; answers how many steps there were. */
    private int go(Tap tap, double factor, boolean held, int ms) {
        int steps = 0;
        for (long end = now + ms; now < end; now += BEAT) if (tap.step(factor, held, now)) steps++;
        return steps;
    }

    @Test
    void aTapThatWasNeverMovedIsOpen() {
        Tap tap = tap(2);

        assertFalse(tap.step(1, false, now));
        assertEquals(1, tap.value());
    }

    @Test
    void itIsAtTheFactorOnceTheMeanIs() {
        Tap tap = tap(2);
        go(tap, 0.4, false, 1_000);
        assertTrue(tap.value() > 0.4);

        go(tap, 0.4, false, 2_000);

        assertEquals(0.4, tap.value());
    }

    @Test
    void afterAPauseItBeginsWithTheShareOfOneWindowAndIsOpenWhenTheWindowsAreFull() {
        Tap tap = tap(2);
        go(tap, 0, true, 10_000);
        assertEquals(0.5, tap.value());

        assertEquals(0, go(tap, 1, false, 1_400)); // clients try again, and the rise is where it began
        go(tap, 1, false, 600);
        assertTrue(tap.value() > 0.6 && tap.value() < 1);

        go(tap, 1, false, 600);
        assertEquals(1, tap.value());
    }

    @Test
    void aPauseThatIsHeldRaisesNothing() {
        Tap tap = tap(2);
        go(tap, 0.1, false, 20_000);

        go(tap, 0, true, 10_000);

        assertEquals(0.1, tap.value());
    }

    @Test
    void aMomentsPauseTakesAMomentsQuota() {
        Tap tap = tap(11);
        go(tap, 0, true, 1_000);

        go(tap, 1, false, 4_000);

        assertEquals(1 - 1_750 / 11_500.0, tap.value(), 0.02);
    }

    @Test
    void aFactorOfNothingIsReachedInTheEnd() {
        Tap tap = tap(11);

        go(tap, 0, false, 12 * 12_000);

        assertEquals(0, tap.value());
    }

    @Test
    void aFullWayDownAndUpTakesFewStepsAndThenNone() {
        Tap tap = tap(11);

        assertTrue(go(tap, 0.1, false, 60_000) <= 75);
        assertTrue(go(tap, 1, false, 60_000) <= 75);
        assertEquals(0, go(tap, 1, false, 60_000));
    }

    @Test
    void oneWindowLeavesNothingToRiseThrough() {
        assertEquals(1, Tap.rise(0, 1, 1_000));
        assertEquals(0.5, Tap.rise(0, 2, 1_000));
        assertEquals(0.8, Tap.rise(1_200, 2, 1_000));
        assertEquals(1, Tap.rise(1_500, 2, 1_000));
    }

    /** The throttle time of a client at its bound is (rate - bound) / bound x window: never above max.mute. */
    @Proves("proposal-035.steps")
    @Property
    void noStepMutesForLongerThanAllowed(@ForAll @Size(max = 60) List<@DoubleRange(min = 0.01, max = 1) Double> targets,
            @ForAll @IntRange(min = 100, max = 3_000) int everyMs, @ForAll @IntRange(min = 1, max = 12) int windows) {
        Tap other = tap(windows);
        int kafkaMs = (windows + 1) * 1_000;
        double[] past = new double[targets.size()];
        for (int i = 0; i < past.length; i++) {
            other.step(targets.get(i), false, (long) i * everyMs);
            past[i] = other.value();
            double rate = (i + 1) * everyMs > kafkaMs ? 0 : 1;
            for (int j = i; j >= 0 && (i - j) * everyMs < kafkaMs; j--) rate = Math.max(rate, past[j]);
            double mute = (rate - past[i]) / past[i] * kafkaMs;
            assertTrue(mute <= MUTE + 1e-3, "mute of " + mute + " ms at step " + i);
        }
    }
}
