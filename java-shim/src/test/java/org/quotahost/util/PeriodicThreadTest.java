package org.quotahost.util;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** A periodic thread goes on whatever its task throws. */
class PeriodicThreadTest {
    private final AtomicInteger turns = new AtomicInteger();
    private final CountDownLatch hundred = new CountDownLatch(100);

    /** Runs a task that throws this each time, a hundred times; answers what was logged. */
    private String log(Error error) {
        return LogCapture.during(() -> {
            PeriodicThread thread = new PeriodicThread("test", 1, () -> {
                turns.incrementAndGet();
                hundred.countDown();
                throw error;
            }, () -> {});
            thread.start();
            try {
                assertTrue(hundred.await(30, TimeUnit.SECONDS), "it ended after " + turns);
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            } finally {
                thread.close();
            }
        });
    }

    @Test
    void anErrorIsCountedAndLoggedOnceAndTheNextTurnComes() {
        long before = PeriodicThread.failures();
        String log = log(new NoClassDefFoundError("gone"));

        assertEquals(turns.get(), PeriodicThread.failures() - before);
        assertEquals(1, LogCapture.lines(log, "test failed; it goes on"), log);
        assertTrue(log.contains("NoClassDefFoundError: gone"), log);
    }

    @Test
    void soIsAFullHeapWhichOnlyTheJvmsOwnOptionEndsTheProcessFor() {
        assertEquals(1, LogCapture.lines(log(new OutOfMemoryError("heap")), "test failed; it goes on"));
    }

    @Test
    void afterAMinuteTheNextLineSaysHowManyWereLeftOut() {
        long[] now = {0};
        LineLimit limit = new LineLimit(1, () -> now[0]);

        assertEquals(0, limit.pass());
        for (int i = 0; i < 5_000; i++) assertEquals(LineLimit.NO, limit.pass());
        now[0] += TimeUnit.MINUTES.toNanos(1);
        assertEquals(5_000, limit.pass());
        assertEquals(LineLimit.NO, limit.pass());
    }
}
