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

/** How quickly a factor falls, and that no step mutes for too long. */
class RampTest {
    private static final long SECOND = 1_000_000_000L;
    private static final int WINDOW = 11;
    private static final int MUTE = 30;
    private static final double SHARE = (double) WINDOW / (WINDOW + MUTE);
    private final Ramp ramp = new Ramp();
    private long now = 1_000 * SECOND;

    RampTest() {
        ramp.configure(WINDOW * 1_000, MUTE * 1_000);
    }

    private double after(double seconds, double target) {
        now += (long) (seconds * SECOND);
        ramp.aim(target);
        ramp.step(now);
        return ramp.value();
    }

    @Test
    void upwardsIsAtOnce() {
        after(0, 0.3);
        assertEquals(1, after(0.1, 1));
    }

    @Test
    void aSmallStepDownIsAtOnceAndALargeOneTakesAWindowEach() {
        assertEquals(0.5, after(0, 0.5));
        assertEquals(SHARE, after(1, 0.1), 1e-9);
        assertEquals(SHARE, after(9, 0.1), 1e-9);
        assertEquals(0.1, after(2, 0.1));
    }

    @Test
    void aFactorOfNothingIsReachedInTheEnd() {
        for (int window = 0; window < 12; window++) after(WINDOW, 0);
        assertEquals(0, ramp.value());
    }

    /** The throttle time of a client at its bound is (rate - bound) / bound x window: never above max.mute. */
    @Proves("proposal-035.steps")
    @Property
    void noStepMutesForLongerThanAllowed(@ForAll @Size(max = 60) List<@DoubleRange(min = 0.01, max = 1) Double> targets,
            @ForAll @IntRange(min = 100, max = 3_000) int everyMs) {
        Ramp other = new Ramp();
        other.configure(WINDOW * 1_000, MUTE * 1_000);
        long at = 1_000 * SECOND;
        double[] past = new double[targets.size()];
        for (int i = 0; i < past.length; i++, at += everyMs * 1_000_000L) {
            other.aim(targets.get(i));
            other.step(at);
            past[i] = other.value();
            double rate = 1;
            if ((i + 1) * everyMs > WINDOW * 1_000) rate = 0;
            for (int j = i; j >= 0 && (i - j) * everyMs < WINDOW * 1_000; j--) rate = Math.max(rate, past[j]);
            double mute = (rate - past[i]) / past[i] * WINDOW;
            assertTrue(mute <= MUTE + 1e-6, "mute of " + mute + " s at step " + i);
        }
    }
}
