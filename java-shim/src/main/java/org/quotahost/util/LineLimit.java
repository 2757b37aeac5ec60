package org.quotahost.util;

import java.util.ArrayDeque;
import java.util.function.LongSupplier;

/** Decides which of many like log lines are written, few in each minute, however often a fault is met. */
public final class LineLimit {
    public static final long MINUTE = 60_000_000_000L;
    /** pass() answers it if the line is not to be written. */
    public static final long NO = -1;

    private final int lines;
    private final LongSupplier nanoClock;
    /** When the last lines were written, the oldest first. */
    private final ArrayDeque<Long> written = new ArrayDeque<>();
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
        boolean isFull = written.size() == lines;
        if (isFull && nanoClock.getAsLong() - written.peekFirst() < MINUTE) {
            leftOut++;
            return NO;
        }
        if (isFull) written.removeFirst();
        written.addLast(nanoClock.getAsLong());
        long before = leftOut;
        leftOut = 0;
        return before;
    }
}
