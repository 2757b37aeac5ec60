package org.quotahost.fence;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.quotahost.Proves;

/** What a client may send on while it is turned back. */
class AllowanceTest {
    private static final long ORIGIN = Long.MAX_VALUE - 1; // System.nanoTime may be anything, and overflow
    private static final long SECOND = 1_000_000_000L;
    private static final int ALICE = 1, BOB = 2;

    private final TurnedBack.Allowance allowance = new TurnedBack.Allowance(ORIGIN);

    private boolean take(int key, long bytes, double seconds) {
        return allowance.take(key, bytes, 1_000, ORIGIN + (long) (seconds * SECOND));
    }

    @Test
    void aClientMaySendWhatItHasSavedUpAndThenItsRate() {
        for (int i = 0; i < TurnedBack.Allowance.SAVED_SECONDS; i++) assertTrue(take(ALICE, 1_000, 0));
        assertFalse(take(ALICE, 1_000, 0));
        assertFalse(take(ALICE, 1_000, 0.9));
        assertTrue(take(ALICE, 1_000, 1));
        assertFalse(take(ALICE, 1_000, 1));
        assertTrue(take(BOB, 1_000, 1), "each has its own");
    }

    @Proves("kip-13.error-rejected")
    @Test
    void aClientThatNeverWaitsGetsItsRateAndNoMore() {
        long taken = 0;
        for (double now = 0; now < 100; now += 0.001) if (take(ALICE, 100, now)) taken += 100;
        assertEquals(1_000 * (100 + TurnedBack.Allowance.SAVED_SECONDS), taken, 200);
    }

    @Test
    void aProducerThatBacksOffAsKafkasDoIsNeverOutOfItHoweverLargeItsRequests() {
        double now = 0;
        for (double backOff = 0.1; now < 1_000; backOff = Math.min(1, 2 * backOff)) {
            assertTrue(take(ALICE, 1_000_000, now));
            now += backOff;
        }
    }

    @Test
    void withARateOfZeroNothingIsAllowed() {
        assertFalse(allowance.take(ALICE, 1, 0, ORIGIN + SECOND));
    }

    @Test
    void itAllocatesNothing() {
        Runnable ask = () -> allowance.take(ALICE, 100, 1_000, ORIGIN + SECOND);

        assertEquals(0, FenceFixture.bytesPerCall(ask));
    }
}
