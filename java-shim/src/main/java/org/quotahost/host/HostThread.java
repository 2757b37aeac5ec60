package org.quotahost.host;

import static org.quotahost.python.PythonEnvironment.START_SECONDS;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.common.config.ConfigException;
import org.quotahost.inbox.Inbox;
import org.quotahost.python.Interpreter;
import org.quotahost.python.PythonEnvironment;
import org.quotahost.util.BrokerConfigs;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread that runs Python, from its start through its lives to its end.
 *
 * <p>The broker's start waits for the first life: for a while until Python has read the settings, then for
 * start.timeout, which is one of them, until the plugins are built. When a life ends the next one begins: after a pause
 * that is longer from end to end, and short again once a life was a long one.
 */
public final class HostThread {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.host");
    /** More than Java's default, since Python may recurse deeply in C (regular expressions, pydantic). */
    private static final long STACK_BYTES = 16L << 20;
    private static final long SHORTEST_PAUSE_MS = 500, LONGEST_PAUSE_MS = 30_000;
    /** A life of so long had started well: its end is not the one before it once more. */
    private static final long LONG_LIFE_MS = 60_000;

    private final Inbox inbox;
    private final CompletableFuture<Long> startTimeoutMs = new CompletableFuture<>();
    private final CompletableFuture<Void> ready = new CompletableFuture<>();
    private final CountDownLatch closing = new CountDownLatch(1);
    private volatile long restarts;
    /** Why this life of Python cannot use its configuration, null if it can. */
    private volatile String refusal;
    private Thread thread;

    /** @param inbox what Python is told anew in each of its lives, and by which it hears of its end */
    HostThread(Inbox inbox) {
        this.inbox = inbox;
    }

    // ---- start -----------------------------------------------------------------------------------------------

    /** Starts Python, and waits until its plugins are built. */
    void start(PythonEnvironment environment) {
        thread = new Thread(null, () -> run(environment), "quotahost-host", STACK_BYTES);
        thread.setDaemon(true);
        thread.start();
        await(CompletableFuture.anyOf(startTimeoutMs, ready), START_SECONDS * 1_000,
                "Python did not start and read its settings within " + START_SECONDS
                        + " s (-Dquotahost.python.start.seconds): the machine is too busy, or an import hangs");
        long timeoutMs = startTimeoutMs.getNow(0L);
        await(ready, timeoutMs, "the Python host was not ready in time (" + BrokerConfigs.PREFIX + "start.timeout="
                + timeoutMs + " ms); a plugin hangs while it is imported or built. See the log above");
    }

    private static void await(CompletableFuture<?> step, long timeoutMs, String problem) {
        try {
            step.get(timeoutMs, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            throw new ConfigException(problem);
        } catch (ExecutionException e) {
            if (e.getCause() instanceof ConfigException refused) throw refused;
            throw new ConfigException("the Python host failed to start: " + e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new ConfigException("interrupted while the Python host started");
        }
    }

    /** Python has read the settings; the broker's start waits this much longer for the plugins. */
    public void starting(long timeoutMs) {
        startTimeoutMs.complete(timeoutMs);
    }

    /** The plugins are built, and the broker's start goes on. */
    void ready() {
        ready.complete(null);
    }

    /** The configuration cannot be used: the broker's start ends, a later start of Python alone is tried again. */
    public void refuse(String problem) {
        refusal = problem;
        ready.completeExceptionally(new ConfigException(problem));
    }

    /** Whether the broker's start is over: the Python host that asks is not the first of this JVM. */
    public boolean restarted() {
        return ready.isDone();
    }

    // ---- lives -----------------------------------------------------------------------------------------------

    private void run(PythonEnvironment environment) {
        long pauseMs = 0;
        try {
            Interpreter.start(environment);
            while (!closing()) {
                long begin = System.nanoTime();
                refusal = null;
                String problem = Interpreter.serve();
                if (problem == null) problem = refusal != null ? refusal : "the Python host ended at once";
                if (!ready.isDone()) refuse(problem);
                if (closing() || ready.isCompletedExceptionally()) return;
                restarts = restarts + 1;
                pauseMs = pause(pauseMs, TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin));
                LOG.error("The Python host ended; it starts again in {} ms. {}", pauseMs, problem);
                if (closing.await(pauseMs, TimeUnit.MILLISECONDS)) return;
                inbox.replay(); // the next Python knows nothing of the quotas and the cluster
            }
        } catch (ConfigException e) {
            ready.completeExceptionally(e);
        } catch (Throwable e) {
            ready.completeExceptionally(e);
            LOG.error("The Python host's thread ends; fallback.action comes into force after validity", e);
        }
    }

    /** The pause before the next life, in ms: after the pause before the last one (0: there was none) and its length. */
    static long pause(long beforeMs, long livedMs) {
        if (beforeMs == 0 || livedMs >= LONG_LIFE_MS) return SHORTEST_PAUSE_MS;
        return Math.min(LONGEST_PAUSE_MS, 2 * beforeMs);
    }

    /** How often Python was started again. */
    long restarts() {
        return restarts;
    }

    // ---- end -------------------------------------------------------------------------------------------------

    /** Whether the Python host has to end. */
    public boolean closing() {
        return closing.getCount() == 0;
    }

    /** Tells Python to end. It waits for nothing. */
    void end() {
        closing.countDown();
        inbox.postEvent("closing", List.of());
    }

    /** Waits until the thread has ended, for so many ms at most. */
    void awaitEnd(long atMostMs) {
        if (thread == null) return;
        try {
            thread.join(atMostMs);
            if (thread.isAlive()) LOG.warn("The Python host did not end within {} ms: a plugin hangs", atMostMs);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
