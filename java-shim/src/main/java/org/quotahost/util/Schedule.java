package org.quotahost.util;

import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One daemon thread with the turns that must go on while Python hangs. Each is guarded by itself: whatever it throws, errors
 * too, is counted, logged once a minute at most, and all turns come again. A JVM that is to end when its heap is full
 * (-XX:+ExitOnOutOfMemoryError) does so before the error gets here. What may take long (Kafka's meters of thousands of
 * topics) has a schedule of its own, so that it never holds up the lease's check.
 */
public final class Schedule {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.watch");
    private static final LongAdder FAILURES = new LongAdder();

    private final ScheduledThreadPoolExecutor thread;

    public Schedule(String name) {
        thread = new ScheduledThreadPoolExecutor(1, turns -> {
            Thread made = new Thread(turns, name);
            made.setDaemon(true);
            return made;
        });
    }

    /** Of all schedules since the start of this JVM. */
    public static long failures() {
        return FAILURES.sum();
    }

    /** Adds a turn, which comes after each pause of so many ms; the log calls it by this name. */
    public void every(long ms, String name, Runnable turn) {
        LineLimit lines = new LineLimit(1);
        thread.scheduleWithFixedDelay(() -> {
            try {
                turn.run();
            } catch (Throwable e) {
                failed(name, lines, e);
            }
        }, ms, ms, TimeUnit.MILLISECONDS);
    }

    /** Counts and logs it. Logging may fail for the same reason, such as a heap that is full; the next turn comes all the same. */
    public static void failed(String name, LineLimit lines, Throwable e) {
        FAILURES.increment();
        try {
            long before = lines.pass();
            if (before == LineLimit.NO) return;
            LOG.error("{} failed; it goes on ({} failures since the last such line)", name, before, e);
        } catch (Throwable again) {
            FAILURES.increment();
        }
    }

    /** No further turn begins. */
    public void end() {
        thread.shutdown();
    }

    /** Ends, and waits for the turn that goes on until a time of System.nanoTime at most. Answers whether it has ended. */
    public boolean close(long until) {
        end();
        try {
            return thread.awaitTermination(until - System.nanoTime(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }
}
