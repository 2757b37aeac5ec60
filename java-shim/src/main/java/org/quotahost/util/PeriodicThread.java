package org.quotahost.util;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A daemon thread that does one task again and again until it is closed, without Python.
 *
 * <p>Both threads that must go on while Python hangs are of this kind: Watch in the package host and TopicWatch in
 * topics. So whatever the task throws, errors too, is counted and logged, once a minute at most, and the task is done
 * again. A JVM that is to end when its heap is full (-XX:+ExitOnOutOfMemoryError) does so before the error gets here.
 */
public final class PeriodicThread {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.watch");
    /** A broker that stops waits no longer than this for a task that hangs. */
    private static final long CLOSE_MS = 1_000;
    private static final LongAdder FAILURES = new LongAdder();

    private final CountDownLatch closed = new CountDownLatch(1);
    private final LineLimit lines = new LineLimit(1);
    private final LongSupplier task;
    private final long firstMs;
    private final Runnable atEnd;
    private final Thread thread;

    /**
     * Makes the thread, which start() starts.
     *
     * @param name the thread's name, as a thread dump shows it
     * @param firstMs how long to wait before the task is done first, and after it has failed, in ms
     * @param task is done each time, and answers how long to wait until the next time, in ms
     * @param atEnd is done on the same thread once it is closed
     */
    public PeriodicThread(String name, long firstMs, LongSupplier task, Runnable atEnd) {
        this.firstMs = firstMs;
        this.task = task;
        this.atEnd = atEnd;
        thread = new Thread(this::run, name);
        thread.setDaemon(true);
    }

    /** How often tasks of all these threads have failed since the start of this JVM. */
    public static long failures() {
        return FAILURES.sum();
    }

    public void start() {
        thread.start();
    }

    /** Ends the thread, and waits a moment until it has ended. */
    public void close() {
        closed.countDown();
        try {
            thread.join(CLOSE_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void run() {
        try {
            long pause = firstMs;
            while (!closed.await(pause, TimeUnit.MILLISECONDS)) pause = turn();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            atEnd.run();
        }
    }

    private long turn() {
        try {
            return task.getAsLong();
        } catch (Throwable e) {
            FAILURES.increment();
            log(e);
            return firstMs;
        }
    }

    /** Logging may fail for the same reason, such as a heap that is full; the next turn comes all the same. */
    private void log(Throwable e) {
        try {
            long before = lines.pass();
            if (before == LineLimit.NO) return;
            LOG.error("{} failed; it goes on in {} ms ({} failures since the last such line)", thread.getName(),
                    firstMs, before, e);
        } catch (Throwable again) {
            FAILURES.increment();
        }
    }
}
