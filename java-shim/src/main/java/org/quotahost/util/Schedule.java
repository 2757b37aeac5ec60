package org.quotahost.util;

import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One daemon thread with the turns that must go on while Python hangs.
 *
 * <p>Each turn is guarded by itself: whatever it throws, errors too, is counted, logged once a minute at most, and the
 * turn comes again; all other turns come as if nothing had happened. A JVM that is to end when its heap is full
 * (-XX:+ExitOnOutOfMemoryError) does so before the error gets here. What may take long (Kafka's meters of thousands of
 * topics) has a schedule of its own, so that it never holds up the lease's check.
 */
public final class Schedule {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.watch");
    private static final LongAdder FAILURES = new LongAdder();

    private final ScheduledThreadPoolExecutor thread;

    /** @param name the thread's name, as a thread dump shows it */
    public Schedule(String name) {
        thread = new ScheduledThreadPoolExecutor(1, turns -> {
            Thread made = new Thread(turns, name);
            made.setDaemon(true);
            return made;
        }, new ThreadPoolExecutor.DiscardPolicy()); // a turn that ends after end() has no next one
        thread.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    }

    /** How often turns of all schedules have failed since the start of this JVM. */
    public static long failures() {
        return FAILURES.sum();
    }

    /** Adds a turn that comes every so many ms; see add. */
    public void every(long ms, String name, Runnable turn) {
        add(name, ms, () -> {
            turn.run();
            return ms;
        });
    }

    /**
     * Adds a turn, which comes first after its pause; the first one starts the thread.
     *
     * @param name what the log calls it
     * @param pauseMs how long to wait before it comes first, and after it has failed
     * @param turn answers how long to wait until it comes again, in ms
     */
    public void add(String name, long pauseMs, LongSupplier turn) {
        schedule(name, pauseMs, pauseMs, turn, new LineLimit(1));
    }

    private void schedule(String name, long inMs, long pauseMs, LongSupplier turn, LineLimit lines) {
        thread.schedule(() -> {
            long next = pauseMs;
            try {
                next = turn.getAsLong();
            } catch (Throwable e) {
                failed(name, pauseMs, lines, e);
            }
            schedule(name, next, pauseMs, turn, lines);
        }, inMs, TimeUnit.MILLISECONDS);
    }

    /** Logging may fail for the same reason, such as a heap that is full; the next turn comes all the same. */
    private static void failed(String name, long pauseMs, LineLimit lines, Throwable e) {
        FAILURES.increment();
        try {
            long before = lines.pass();
            if (before == LineLimit.NO) return;
            LOG.error("{} failed; it goes on in {} ms ({} failures since the last such line)", name, pauseMs, before, e);
        } catch (Throwable again) {
            FAILURES.increment();
        }
    }

    /** No further turn begins; one that goes on comes to its end. It waits for nothing. */
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
