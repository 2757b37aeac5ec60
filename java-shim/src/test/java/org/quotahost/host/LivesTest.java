package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** How soon a Python host that has ended is started again; broker tests see what an upgrade does. */
class LivesTest {
    @Test
    void thePauseGrowsFromTheThirdShortLifeInARowUpToABound() {
        assertEquals(List.of(500L, 500L, 1_000L, 2_000L, 4_000L, 8_000L, 16_000L, 30_000L, 30_000L),
                IntStream.rangeClosed(1, 9).mapToObj(Lives::pause).toList());
        assertEquals(30_000, Lives.pause(Integer.MAX_VALUE));
    }
}
