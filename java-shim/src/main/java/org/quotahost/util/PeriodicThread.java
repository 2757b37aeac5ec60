package org.quotahost.util;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * A daemon thread that does one task again and again until it is closed, without Python.
 *
 * <p>Both threads that must go on while Python hangs are of this kind: Watch in the package host and TopicWatch in
 * topics.
 */
public final class PeriodicThread {
    /** A broker that stops waits no longer than this for a task that hangs. */
    private static final long CLOSE_MS = 1_000;

    private final CountDownLatch closed = new CountDownLatch(1);
    private final LongSupplier task;
    private final long firstMs;
    private final Runnable atEnd;
    private final Thread thread;

    /**
     * Makes the thread, which start() starts.
     *
     * @param name the thread's name, as a thread dump shows it
     * @param firstMs how long to wait before the task is done first, in ms
     * @param task is done each time, throws nothing, and answers how long to wait until the next time, in ms
     * @param atEnd is done on the same thread once it is closed
     */
    public PeriodicThread(String name, long firstMs, LongSupplier task, Runnable atEnd) {
        this.firstMs = firstMs;
        this.task = task;
        this.atEnd = atEnd;
        thread = new Thread(this::run, name);
        thread.setDaemon(true);
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
            while (!closed.await(pause, TimeUnit.MILLISECONDS)) pause = task.getAsLong();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            atEnd.run();
        }
    }
}
