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

    private static Windows windows(int number) {
        return new Windows(number, 1_000, MUTE);
    }

    /** Goes on in beats for so long; answers how many steps there were. */
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
