package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** How soon a Python host that has ended is started again. */
class RestartPauseTest {
    private final RestartPause pause = new RestartPause();

    @Test
    void itGrowsUpToABoundWhileTheHostEndsSoonAfterEachStart() {
        assertEquals(List.of(500L, 1_000L, 2_000L, 4_000L, 8_000L, 16_000L, 30_000L, 30_000L),
                LongStream.range(0, 8).map(i -> pause.after(i * 100)).boxed().toList());
    }

    @Test
    void itIsShortAgainOnceAHostHasRunWell() {
        for (int i = 0; i < 8; i++) pause.after(10);

        assertEquals(500, pause.after(3_600_000));
        assertEquals(1_000, pause.after(10));
    }
}
