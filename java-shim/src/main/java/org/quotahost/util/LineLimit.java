package org.quotahost.util;

import java.util.function.LongSupplier;

/** Decides which of many like log lines are written, few in each minute, however often a fault is met. */
public final class LineLimit {
    public static final long MINUTE = 60_000_000_000L;
    /** pass() answers it if the line is not to be written. */
    public static final long NO = -1;

    private final int lines;
    private final LongSupplier nanoClock;
    /** When the minute began in which so many lines were written. */
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

    /** How many lines were left out since the last that was written, if this one is to be written; else NO. */
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
