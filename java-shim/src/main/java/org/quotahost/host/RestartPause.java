package org.quotahost.host;

/**
 * How long to wait before a Python host that has ended is started again: longer from end to end, up to a bound, and
 * short again once a host has run for a while.
 */
final class RestartPause {
    private static final long SHORTEST_MS = 500;
    private static final long LONGEST_MS = 30_000;
    /** A host that has run for so long had started well: its end is not the one before it once more. */
    private static final long WELL_MS = 60_000;

    private long nextMs = SHORTEST_MS;

    /** @param ranMs how long the host that has ended had run */
    long after(long ranMs) {
        if (ranMs >= WELL_MS) nextMs = SHORTEST_MS;
        long pause = nextMs;
        nextMs = Math.min(LONGEST_MS, 2 * nextMs);
        return pause;
    }
}
