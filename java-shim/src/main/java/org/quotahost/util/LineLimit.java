package org.quotahost.util;

import java.util.function.LongSupplier;

/**
 * Decides which of many equal log lines are written: the first, and then at most one a minute.
 *
 * <p>A fault that comes and goes, or lasts, then costs a bounded number of lines however often it is met.
 */
public final class LineLimit {
    private static final long MINUTE = 60_000_000_000L;
    /** pass() answers it if the line is not to be written. */
    public static final long NO = -1;

    private final LongSupplier nanoClock;
    private boolean any;
    private long lastAt;
    private long leftOut;

    public LineLimit() {
        this(System::nanoTime);
    }

    LineLimit(LongSupplier nanoClock) {
        this.nanoClock = nanoClock;
    }

    /** How many lines were left out since the last that was written, if this one is to be written; else NO. */
    public synchronized long pass() {
        long now = nanoClock.getAsLong();
        if (any && now - lastAt < MINUTE) {
            leftOut++;
            return NO;
        }
        any = true;
        lastAt = now;
        long before = leftOut;
        leftOut = 0;
        return before;
    }
}
