package org.quotahost.brokerlog;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** Which lines about changed limits pass, and the line in place of the others. */
class LimitLinesTest {
    private long now = 1;
    private final LimitLines lines = new LimitLines(() -> now);

    private long passing(int count) {
        long passed = 0;
        for (int i = 0; i < count; i++) if (!lines.leavesOut(false)) passed++;
        return passed;
    }

    @Test
    void aTypeThatIsReadAgainForAnotherReasonIsNotTakenForTheFactors() {
        lines.scan(0, 1);
        assertTrue(lines.leavesOut(false));
        lines.scan(0, 1);
        assertFalse(lines.leavesOut(false));
        lines.scan(1, 1);
        assertTrue(lines.leavesOut(false), "the other type has not seen that step yet");
    }

    @Test
    void othersHaveAFewLinesInEachMinute() {
        assertEquals(LimitLines.PER_MINUTE, passing(10_000));
        now += LimitLines.MINUTE - 1;
        assertEquals(0, passing(10));
        now += 1;
        assertEquals(LimitLines.PER_MINUTE, passing(10_000));
    }

    @Test
    void whetherTheLevelIsOnIsNotCountedAsALine() {
        for (int i = 0; i < 1_000; i++) assertFalse(lines.leavesOut(true));
        assertEquals(LimitLines.PER_MINUTE, passing(1_000));
        assertTrue(lines.leavesOut(true), "then the line is not even made");
    }

    @Test
    void theLineComesOnceAMinuteWithAllThatWasLeftOutSince() {
        assertNull(lines.summary(() -> 1));
        passing(LimitLines.PER_MINUTE + 7);
        assertTrue(lines.summary(() -> 1).contains("7 more changed limits than are named above"));
        now += LimitLines.MINUTE;
        lines.scan(0, 1);
        passing(2_000);
        assertTrue(lines.summary(() -> 0.5).contains("2,000 in 1 readings"));
        for (int step = 2; step < 40; step++) {
            lines.scan(0, step);
            passing(2_000);
            assertNull(lines.summary(() -> 0.5));
        }
        now += LimitLines.MINUTE;
        assertTrue(lines.summary(() -> 0.1).contains("76,000 in 38 readings"));
        assertNull(lines.summary(() -> 0.1), "nothing was left out since");
    }
}
