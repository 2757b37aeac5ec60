package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** How soon a Python host that has ended is started again. */
class HostThreadTest {
    @Test
    void thePauseGrowsUpToABoundWhileTheHostEndsSoonAfterEachStart() {
        assertEquals(List.of(500L, 1_000L, 2_000L, 4_000L, 8_000L, 16_000L, 30_000L, 30_000L),
                LongStream.iterate(HostThread.pause(0, 10), before -> HostThread.pause(before, 700)).limit(8).boxed().toList());
    }

    @Test
    void itIsShortAgainOnceAHostHasRunWell() {
        assertEquals(500, HostThread.pause(30_000, 3_600_000));
        assertEquals(1_000, HostThread.pause(500, 10));
    }
}
