package org.quotahost.fence;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;
import org.quotahost.util.LineLimit;
import org.quotahost.util.LogCapture;

/** The log lines of a fence that closes and opens. */
class FenceLogTest {
    private long now;
    private final FenceLog fenceLog = new FenceLog(new LineLimit(FenceLog.PER_MINUTE, () -> now));

    private String log(int times, boolean atTheEnd) {
        return LogCapture.during(() -> {
            for (int i = 0; i < times; i++) fenceLog.state(i % 2 == 0, false, false);
            fenceLog.state(atTheEnd, false, false);
        });
    }

    @Test
    void aFenceThatFluttersWritesABoundedNumberOfLines() {
        assertEquals(FenceLog.PER_MINUTE, log(10_000, true).lines().count());
    }

    @Test
    void theLastStateIsLoggedOnceALineMayBeWrittenAgain() {
        log(10_000, true);
        now += 60_000_000_000L;

        assertEquals(1, LogCapture.lines(log(0, true), "The fence is closed"));
        assertEquals(0, log(0, true).lines().count());
    }
}
