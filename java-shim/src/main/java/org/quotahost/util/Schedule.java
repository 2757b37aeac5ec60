package org.quotahost.util;

import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One daemon thread with the turns that must go on while Python hangs, each guarded by itself: whatever it throws, errors
 * too, is counted, logged once a minute at most, and all turns come again. What may take long (Kafka's meters of
 * thousands of topics) has a schedule of its own, so that it never holds up the lease's check.
 *
 * <p>Between turns nothing is allocated. The worker of Java's executors needs memory to wait for the next turn: where the heap
 * is full for a moment it ends, and no turn comes again. A JVM that is to end then (-XX:+ExitOnOutOfMemoryError) does so before
 * the error gets here.
 */
public final class Schedule {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.watch");
    private static final AtomicLong FAILURES = new AtomicLong();

    private final Thread thread;
    private volatile Turn[] turns = {};
    private volatile boolean ended;

    private static final class Turn {
        private final long pause;
        private final String name;
        private final Runnable work;
        private final LineLimit lines = new LineLimit(1);
        /** By System.nanoTime; the schedule's thread alone moves it on. */
        private long due;

        private Turn(long pause, String name, Runnable work) {
            this.pause = pause;
            this.name = name;
            this.work = work;
            due = System.nanoTime() + pause;
        }

        private void take() {
            try {
                work.run();
            } catch (Throwable e) {
                failed(name, lines, e);
            }
            due = System.nanoTime() + pause;
        }
    }

    public Schedule(String name) {
        thread = new Thread(this::run, name);
        thread.setDaemon(true);
    }

    /** Of all schedules since the start of this JVM. */
    public static long failures() {
        return FAILURES.get();
    }

    /** Adds a turn, which comes after each pause of so many ms; the log calls it by this name. */
    public synchronized void every(long ms, String name, Runnable work) {
        Turn[] more = Arrays.copyOf(turns, turns.length + 1);
        more[turns.length] = new Turn(TimeUnit.MILLISECONDS.toNanos(ms), name, work);
        turns = more;
        if (more.length == 1) thread.start();
        else LockSupport.unpark(thread);
    }

    private void run() {
        while (!ended) {
            long now = System.nanoTime(), pause = Long.MAX_VALUE;
            for (Turn turn : turns) {
                if (turn.due - now <= 0 && !ended) turn.take();
                pause = Math.min(pause, turn.due - System.nanoTime());
            }
            if (!ended) LockSupport.parkNanos(pause);
        }
    }

    /** Counts and logs it. Logging may fail for the same reason, such as a heap that is full; the next turn comes all the same. */
    public static void failed(String name, LineLimit lines, Throwable e) {
        FAILURES.incrementAndGet();
        try {
            long before = lines.pass();
            if (before == LineLimit.NO) return;
            LOG.error("{} failed; it goes on ({} failures since the last such line)", name, before, e);
        } catch (Throwable again) {
            FAILURES.incrementAndGet();
        }
    }

    /** No further turn begins. */
    public void end() {
        ended = true;
        LockSupport.unpark(thread);
    }

    /** Ends, and waits for the turn that goes on until a time of System.nanoTime at most. Answers whether it has ended. */
    public boolean close(long until) {
        end();
        try {
            TimeUnit.NANOSECONDS.timedJoin(thread, until - System.nanoTime());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return !thread.isAlive();
    }
}
