package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The broker's start waits for two things one after the other, and names the one that took too long. */
class StartDeadlineTest {
    private long now = Long.MAX_VALUE - 1_000; // nanoTime may wrap
    private final StartDeadline deadline = new StartDeadline(() -> now);

    private void pass(long seconds) {
        now += TimeUnit.SECONDS.toNanos(seconds);
    }

    private long left() {
        return TimeUnit.NANOSECONDS.toSeconds(deadline.leftNanos());
    }

    @Test
    void whatTheProbeTookIsNotTakenFromPython() {
        pass(29);
        deadline.start();

        assertEquals(30, left());
        pass(30);
        assertEquals(0, left());
        assertTrue(deadline.problem().contains("read its settings within 30 s "), deadline.problem());
    }

    @Test
    void thePluginsHaveTheirOwnTimeFromTheSettingsOn() {
        deadline.start();
        pass(29);
        deadline.plugins(2_000);

        assertEquals(2, left());
        assertTrue(deadline.problem().contains("start.timeout=2000 ms"), deadline.problem());
    }
}
