package org.quotahost.host;

import static org.quotahost.python.PythonEnvironment.START_SECONDS;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.common.config.ConfigException;
import org.quotahost.python.Interpreter;
import org.quotahost.python.PythonEnvironment;
import org.quotahost.util.BrokerConfigs;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread that runs Python, on itself or in a process of its own, from its start through its lives to its end.
 *
 * <p>The broker's start waits for the first life: for a while until Python has read the settings, then
 * for as long as Python asks for until the plugins are built. When a life ends the next one begins: after a pause
 * that is longer from end to end, and short again once a life was a long one.
 */
final class HostThread {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.host");
    /** More than Java's default, since Python may recurse deeply in C (regular expressions, pydantic). */
    private static final long STACK_BYTES = 16L << 20;
    private static final long SHORTEST_PAUSE_MS = 500, LONGEST_PAUSE_MS = 30_000;
    private static final long KILL_MS = 500;
    private static final String NO_CHILD = BrokerConfigs.PREFIX + "python.generation: a new value starts another Python beside"
            + " the one that runs, which needs " + BrokerConfigs.PREFIX + "python.process=child; restart the broker instead";
    /** A life of so long had started well: its end is not the one before it once more. */
    private static final long LONG_LIFE_MS = 60_000;

    private final PythonHost host;
    private final CountDownLatch closing = new CountDownLatch(1);
    private volatile long restarts;
    private volatile boolean started;
    private volatile Life life;
    /** Null where Python runs in this process. */
    private volatile Children children;
    private Thread thread;

    HostThread(PythonHost host) {
        this.host = host;
    }

    // ---- start -----------------------------------------------------------------------------------------------

    /** Starts Python, and waits until its plugins are built. */
    void start(BrokerConfigs config) {
        PythonEnvironment environment = PythonEnvironment.of(config.executable(), config.inChild());
        if (config.inChild()) children = new Children(host, environment);
        Life first = begin();
        thread = new Thread(null, () -> run(environment, first), "quotahost-host", STACK_BYTES);
        thread.setDaemon(true);
        thread.start();
        await(CompletableFuture.anyOf(first.starting, first.ready), START_SECONDS * 1_000,
                "Python did not start and read its settings within " + START_SECONDS
                        + " s (-Dquotahost.python.start.seconds): the machine is too busy, or an import hangs");
        long timeoutMs = Math.max(first.starting.getNow(0L), START_SECONDS * 1_000);
        await(first.ready, timeoutMs, "the Python host was not ready within " + timeoutMs / 1_000
                + " s (-Dquotahost.python.start.seconds); a plugin hangs while it is imported or built. See the log above");
        started = true;
    }

    private Life begin() {
        life = new Life(host.hostQuestions.confirmed(), false);
        if (children == null) PythonHost.answerBy(new Calls(host, life));
        return life;
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

    /** Whether the broker's start is over: a life that begins now is not the first of this JVM. */
    boolean hasStarted() {
        return started;
    }

    /** Another host has taken the place of the one that served. */
    void goesOnWith(Life next) {
        life = next;
        if (closing()) next.close();
    }

    // ---- python.generation -----------------------------------------------------------------------------------

    /** Whether a change of properties needs another Python host. */
    private boolean upgrades(BrokerConfigs next) {
        return !BrokerConfigs.generation(host.hostQuestions.confirmed()).equals(next.generation());
    }

    /** For an administrator's request: ConfigException if the new properties, or the new host, can't be used. */
    void check(BrokerConfigs next) {
        if (!upgrades(next)) host.hostQuestions.check(next);
        else if (children != null) children.check(next);
        else throw new ConfigException(NO_CHILD);
    }

    /** Has Python take over what Kafka has applied. It waits for nothing. */
    void apply(BrokerConfigs next) {
        boolean upgrades = upgrades(next);
        if (upgrades && children == null) LOG.warn(NO_CHILD);
        if (upgrades && children != null) children.apply(next);
        else host.hostQuestions.apply(next);
    }

    // ---- lives -----------------------------------------------------------------------------------------------

    private void run(PythonEnvironment environment, Life first) {
        long pauseMs = 0;
        Life now = first;
        try {
            if (children == null) Interpreter.start(environment);
            while (!closing()) {
                long begin = System.nanoTime();
                String problem = children != null ? children.live(now) : Interpreter.serve();
                problem = now.end(problem != null ? problem : "the Python host ended at once");
                if (closing() || first.ready.isCompletedExceptionally()) return;
                restarts = restarts + 1;
                pauseMs = pause(pauseMs, TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin));
                LOG.error("The Python host ended; it starts again in {} ms. {}", pauseMs, problem);
                life.giveBack(host.inbox);
                if (closing.await(pauseMs, TimeUnit.MILLISECONDS)) return;
                host.inbox.replay(); // the next Python knows nothing of the quotas and the cluster
                now = begin();
            }
        } catch (ConfigException e) {
            now.refuse(e.getMessage());
        } catch (Throwable e) {
            now.end(e.toString());
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

    private boolean closing() {
        return closing.getCount() == 0;
    }

    /** Tells Python to end. It waits for nothing. */
    void end() {
        closing.countDown();
        if (life != null) life.close();
        if (children != null) children.close();
        host.inbox.postEvent("closing", List.of()); // it wakes Python, which the next batch tells
    }

    /** Waits until the thread has ended, for so many ms at most. */
    void awaitEnd(long atMostMs) {
        if (thread == null) return;
        try {
            thread.join(atMostMs);
            if (!thread.isAlive()) return;
            LOG.warn("The Python host did not end within {} ms: a plugin hangs", atMostMs);
            if (children == null) return;
            children.kill();
            thread.join(KILL_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
