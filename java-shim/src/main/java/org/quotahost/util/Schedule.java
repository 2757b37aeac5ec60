package org.quotahost.util;

import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One daemon thread that runs the periodic work which must continue while Python hangs, each turn guarded: if a turn throws
 * anything, errors too, the failure is counted, logged at most once a minute, and all turns run again. Work that may take long
 * (Kafka's meters of thousands of topics) has a schedule of its own, so that it never delays the check of the lease.
 *
 * <p>The loop allocates nothing between turns. The worker of Java's executors needs memory to wait for the next turn: if the
 * heap is full for a moment, the worker ends, and no turn runs again. A JVM with -XX:+ExitOnOutOfMemoryError exits before the
 * error gets here.
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
        /** When the turn is due (System.nanoTime); only the schedule's thread changes it. */
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
        thread = daemon(this::run, name);
    }

    /** Returns a thread, not started yet, that never keeps a broker from stopping. */
    public static Thread daemon(Runnable work, String name) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        return thread;
    }

    /** Returns the failures of all schedules since the start of this JVM. */
    public static long failures() {
        return FAILURES.get();
    }

    /** Adds work that runs after each pause of so many ms; the log uses the given name. */
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

    /** Counts and logs a failure. If logging fails, too, for example because the heap is full, the next turn still runs. */
    public static void failed(String name, LineLimit lines, Throwable e) {
        FAILURES.incrementAndGet();
        try {
            long before = lines.pass();
            if (before == LineLimit.NO) return;
            LOG.error("{} failed and will be tried again ({} failures since the last such line)", name, before, e);
        } catch (Throwable again) {
            FAILURES.incrementAndGet();
        }
    }

    /** Makes sure that no further turn begins. */
    public void end() {
        ended = true;
        LockSupport.unpark(thread);
    }

    /** Ends the schedule and waits for the running turn, at most until this System.nanoTime. Returns whether the thread has ended. */
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
