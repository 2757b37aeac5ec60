package org.quotahost.util;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests that every turn goes on, whatever it and the other turns throw, until the schedule is closed. */
class ScheduleTest {
    private final Schedule schedule = new Schedule("test");

    @AfterEach
    void close() {
        schedule.close(System.nanoTime() + 1_000_000_000L);
    }

    private static void await(CountDownLatch latch) {
        try {
            assertTrue(latch.await(30, TimeUnit.SECONDS));
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** Runs a turn, and one that throws this error each time, a hundred times. Returns the log. */
    private String log(Throwable error, AtomicInteger turns) {
        CountDownLatch failing = new CountDownLatch(100);
        CountDownLatch other = new CountDownLatch(100);
        return LogCapture.during(() -> {
            schedule.every(1, "the failing turn", () -> {
                turns.incrementAndGet();
                failing.countDown();
                throw ScheduleTest.<RuntimeException>unchecked(error);
            });
            schedule.every(1, "the other turn", other::countDown);
            await(failing);
            await(other);
            schedule.close(System.nanoTime() + 30_000_000_000L);
        });
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> T unchecked(Throwable e) throws T {
        throw (T) e;
    }

    /** This includes a full heap: only the JVM's own option ends the process for it. */
    @ParameterizedTest
    @ValueSource(classes = {NoClassDefFoundError.class, OutOfMemoryError.class, IllegalStateException.class})
    void aFailureIsCountedAndLoggedOnceAndAllTurnsComeAgain(Class<? extends Throwable> kind) throws Exception {
        long before = Schedule.failures();
        AtomicInteger turns = new AtomicInteger();

        String log = log(kind.getConstructor(String.class).newInstance("gone"), turns);

        assertEquals(turns.get(), Schedule.failures() - before);
        assertEquals(1, LogCapture.lines(log, "the failing turn failed and will be tried again"), log);
        assertTrue(log.contains(kind.getSimpleName() + ": gone"), log);
        assertFalse(log.contains("the other turn"), log);
    }

    @Test
    void closingWaitsForTheTurnThatGoesOnAndNoFurtherOneBegins() {
        AtomicInteger turns = new AtomicInteger();
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        schedule.every(1, "a turn that takes long", () -> {
            turns.incrementAndGet();
            begun.countDown();
            await(goOn);
        });
        await(begun);

        assertFalse(schedule.close(System.nanoTime() + 10_000_000L), "it hangs");
        goOn.countDown();
        assertTrue(schedule.close(System.nanoTime() + 30_000_000_000L));

        assertEquals(1, turns.get());
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
