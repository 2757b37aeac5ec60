package org.quotahost.util;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/** A daemon thread that does one thing again and again, without Python, until it is closed. */
public final class PeriodicThread {
    private static final long CLOSE_MS = 1_000;

    private final CountDownLatch closed = new CountDownLatch(1);
    private final LongSupplier turn;
    private final long firstMs;
    private final Runnable last;
    private final Thread thread;

    /**
     * @param firstMs how long to wait before the first turn
     * @param turn does it, throws nothing, and answers how long to wait for the next, in ms
     * @param last is done on the same thread once it is closed
     */
    public PeriodicThread(String name, long firstMs, LongSupplier turn, Runnable last) {
        this.firstMs = firstMs;
        this.turn = turn;
        this.last = last;
        thread = new Thread(this::run, name);
        thread.setDaemon(true);
    }

    public void start() {
        thread.start();
    }

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
            while (!closed.await(pause, TimeUnit.MILLISECONDS)) pause = turn.getAsLong();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            last.run();
        }
    }
}
