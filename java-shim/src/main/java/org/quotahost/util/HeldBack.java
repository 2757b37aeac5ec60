package org.quotahost.util;

import java.util.concurrent.atomic.DoubleAdder;

/**
 * Who would be held back by one rule, if it were not in shadow, and by how much.
 *
 * <p>One thread counts, others read.
 */
public final class HeldBack {
    /** Of the reading that goes on, the others of the last one that is over. */
    private int counting;
    private int countingUnmeasured;
    private volatile int now;
    private volatile int unmeasured;
    private final DoubleAdder seconds = new DoubleAdder();
    private final DoubleAdder bytes = new DoubleAdder();

    /** A new reading begins: nobody is over the limit until it is added. */
    void begin() {
        counting = countingUnmeasured = 0;
    }

    /** The reading is over. */
    void end() {
        now = counting;
        unmeasured = countingUnmeasured;
    }

    /** Somebody was over the limit for so many seconds, and sent or got so many bytes beyond it. */
    public void add(double forSeconds, double beyond) {
        counting++;
        seconds.add(forSeconds);
        bytes.add(beyond);
    }

    /** Somebody would have a limit, but what it uses isn't measured apart from others. */
    public void addUnmeasured() {
        countingUnmeasured++;
    }

    /** How many were over the limit at the last reading. */
    public int now() {
        return now;
    }

    /** For how many the last reading could not tell. */
    public int unmeasured() {
        return unmeasured;
    }

    /** For how many seconds any of them has been over it, added up. */
    public double seconds() {
        return seconds.sum();
    }

    /** How many bytes beyond it there were. */
    public double bytes() {
        return bytes.sum();
    }
}
