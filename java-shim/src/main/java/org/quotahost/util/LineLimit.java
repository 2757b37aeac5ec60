package org.quotahost.util;

import java.util.function.LongSupplier;

/** A limit on similar log lines: only a few are written in each minute, however often a fault occurs. */
public final class LineLimit {
    public static final long MINUTE = 60_000_000_000L;
    /** The answer of pass() for a line that must not be written. */
    public static final long NO = -1;

    private final int lines;
    private final LongSupplier nanoClock;
    /** When the current minute began, by nanoClock. */
    private long begunAt;
    private int written;
    private long leftOut;

    /** @param lines how many lines a minute pass */
    public LineLimit(int lines) {
        this(lines, System::nanoTime);
    }

    public LineLimit(int lines, LongSupplier nanoClock) {
        this.lines = lines;
        this.nanoClock = nanoClock;
    }

    /** Returns how many lines were suppressed since the last written one, if this line may be written; otherwise NO. */
    public synchronized long pass() {
        long now = nanoClock.getAsLong();
        if (now - begunAt >= MINUTE) written = 0;
        if (written == lines) {
            leftOut++;
            return NO;
        }
        if (written++ == 0) begunAt = now;
        long before = leftOut;
        leftOut = 0;
        return before;
    }
}
