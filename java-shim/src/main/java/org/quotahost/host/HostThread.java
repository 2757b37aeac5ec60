package org.quotahost.host;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.LongAdder;
import org.quotahost.inbox.Inbox;
import org.quotahost.python.Interpreter;
import org.quotahost.python.PythonEnvironment;
import org.quotahost.python.StartException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread that runs Python: the broker's start waits for Python's first life on it, and when a life ends it begins
 * the next, until the host is closed.
 */
final class HostThread {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.host");
    /** More than Java's default, since Python may recurse deeply in C (regular expressions, pydantic). */
    private static final long STACK_BYTES = 16L << 20;
    private static final long CLOSE_MS = 4_000;

    private final Inbox inbox;
    private final CompletableFuture<Void> ready = new CompletableFuture<>();
    private final CountDownLatch closing = new CountDownLatch(1);
    private final StartDeadline deadline = new StartDeadline(System::nanoTime);
    private final LongAdder restarts = new LongAdder();
    /** Why this life of Python cannot use its configuration, null if it can. */
    private volatile String refusal;
    private Thread thread;

    /** @param inbox what Python is told anew in each of its lives, and by which it hears of its end */
    HostThread(Inbox inbox) {
        this.inbox = inbox;
    }

    /** Starts Python, and waits until its plugins are built. */
    void start(PythonEnvironment environment) {
        deadline.start(); // only now: the probe of the environment has a limit of its own
        thread = new Thread(null, () -> run(environment), "quotahost-host", STACK_BYTES);
        thread.setDaemon(true);
        thread.start();
        awaitReady();
    }

    /** How often Python was started again. */
    long restarts() {
        return restarts.sum();
    }

    // ---- what Python reports ---------------------------------------------------------------------------------

    /** Python has read the settings; the broker's start waits this much longer for the plugins. */
    void starting(long timeoutMs) {
        deadline.plugins(timeoutMs);
    }

    /** The plugins are built, and the broker's start goes on. */
    void ready() {
        ready.complete(null);
    }

    /** Whether the broker's start is over. */
    boolean started() {
        return ready.isDone();
    }

    /** The configuration cannot be used: the broker's start ends, a later start of Python alone is tried again. */
    void refuse(String problem) {
        refusal = problem;
        ready.completeExceptionally(new StartException(problem));
    }

    boolean closing() {
        return closing.getCount() == 0;
    }

    // ---- start, lives and end --------------------------------------------------------------------------------

    /** Waits until the plugins are built, up to a deadline that starting() may move. */
    private void awaitReady() {
        try {
            while (true) {
                long left = deadline.leftNanos();
                try {
                    ready.get(Math.max(1, Math.min(left, 100_000_000)), TimeUnit.NANOSECONDS);
                    return;
                } catch (TimeoutException e) {
                    if (left <= 0) throw new StartException(deadline.problem());
                }
            }
        } catch (ExecutionException e) {
            if (e.getCause() instanceof StartException problem) throw problem;
            throw new StartException("the Python host failed to start: " + e.getCause(), e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new StartException("interrupted while the Python host started", e);
        }
    }

    private void run(PythonEnvironment environment) {
        RestartPause restartPause = new RestartPause();
        try {
            Interpreter.start(environment);
            while (!closing()) {
                long begin = System.nanoTime();
                String problem = serve();
                if (!ready.isDone()) refuse(problem);
                if (closing() || ready.isCompletedExceptionally()) return;
                restarts.increment();
                long pause = restartPause.after(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin));
                LOG.error("The Python host ended; it starts again in {} ms. {}", pause, problem);
                if (closing.await(pause, TimeUnit.MILLISECONDS)) return;
                inbox.replay(); // the next Python knows nothing of the quotas and the cluster
            }
        } catch (StartException e) {
            ready.completeExceptionally(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (Throwable e) {
            ready.completeExceptionally(e);
            LOG.error("The Python host's thread ends; fallback.action comes into force after validity", e);
        }
    }

    /** Runs one life of the Python host, and answers why it ended. */
    private String serve() {
        refusal = null;
        String problem = Interpreter.serve();
        if (problem != null) return problem;
        return refusal != null ? refusal : "the Python host ended at once";
    }

    /** Tells Python to end. */
    void end() {
        closing.countDown();
        inbox.postEvent("closing", List.of());
    }

    /** Waits until the thread has ended, for some seconds at most. */
    void awaitEnd() {
        try {
            if (thread != null) thread.join(CLOSE_MS);
            if (thread != null && thread.isAlive()) {
                LOG.warn("The Python host did not end within {} ms: a plugin hangs", CLOSE_MS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
