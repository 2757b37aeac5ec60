package org.quotahost.host;

import static org.quotahost.python.PythonEnvironment.START_SECONDS;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.common.config.ConfigException;
import org.quotahost.python.Interpreter;
import org.quotahost.python.PythonEnvironment;
import org.quotahost.util.BrokerConfigs;
import org.quotahost.util.LineLimit;
import org.quotahost.util.Schedule;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The host thread, which runs one life of Python after another: it pauses between short lives, kills a silent child, lets a new
 * python.generation take over, and keeps the old one if the new one fails.
 *
 * <p>The broker's start waits for the first life. The pause before the next life grows with each short life in a row.
 *
 * <p>A new value of python.generation is an upgrade, which needs a child (docs/adr/0025-one-protocol-two-processes.md). A new
 * process builds its plugins beside the serving process, and waits. If it fails, an administrator's change is refused (check).
 * When Kafka has applied the change, the old process ends and the new one takes its turn. Every LOOK_MS the host thread
 * compares the serving process with what Kafka has applied, so a change that is impossible now is made later. The host thread
 * starts every process itself, since a process ends with the thread that started it.
 */
final class Lives {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.host");
    private static final String GENERATION = BrokerConfigs.PREFIX + "python.generation";
    private static final String NO_CHILD = GENERATION + ": a new value starts another Python beside the one that runs, which needs "
            + BrokerConfigs.PREFIX + "python.process=child; restart the broker instead";
    private static final long LOOK_MS = 50;
    private static final long SHORTEST_PAUSE_MS = 500, LONGEST_PAUSE_MS = 30_000;
    /** A life of this length had started well, so its end does not count as a repetition of the previous end. */
    private static final double LONG_LIFE_SECONDS = 60;
    /**
     * How long an administrator's request waits for the new process. Kafka meanwhile holds a lock on its dynamic configs: if
     * Kafka has to apply another config, all further metadata waits, too.
     */
    private static final long CHECK_MS = 5_000;
    /** How long a process may wait for its turn. Kafka applies a change within a second of the verdict, or never. */
    private static final double STAGED_SECONDS = 60;
    /** How long a process may take to end before the next one gets its turn. */
    private static final double END_SECONDS = 4;
    private static final long KILL_MS = 500;

    private final PythonHost host;
    private final CountDownLatch closing = new CountDownLatch(1);
    private Thread thread;
    /** The life for which the broker's start waits. */
    Life first;
    private volatile Life serving;
    /** The number of restarts of Python. */
    volatile long restarts;
    /** A new Python that is built beside the serving one, or null. Guarded by the lock, like its turn to serve. */
    private Child upgrade;
    /** The serving generation, and the generation that Kafka has applied and that could not be built. */
    private volatile String generation, refused;
    /** Whether Kafka has applied all properties that were stored when this broker started. */
    private volatile boolean storedIsApplied;

    Lives(PythonHost host) {
        this.host = host;
    }

    // ---- the broker's start and end ---------------------------------------------------------------------------

    /** Starts Python, and waits until it is ready. Throws ConfigException if it does not become ready. */
    void start() {
        generation = host.started.generation();
        // Python does not know of a refused generation, and may report that a whole change is in force.
        host.gauges.overrule("Host", "", "ConfigRefused", () -> inChild() && refused != null ? 1 : Double.NaN);
        var environment = PythonEnvironment.of(host.started.executable(), inChild());
        first = life(host.started, CompletableFuture.completedFuture(environment));
        serving = first;
        thread = new Thread(null, this::run, "quotahost-host", Interpreter.STACK_BYTES);
        thread.setDaemon(true);
        thread.start();
        await(CompletableFuture.anyOf(first.starting, first.ready), START_SECONDS * 1_000,
                "Python did not start and read its settings within " + START_SECONDS
                        + " s (-Dquotahost.python.start.seconds): the machine is too busy, or an import hangs");
        await(first.ready, START_SECONDS * 1_000, "the Python host was not ready within " + START_SECONDS
                + " s (-Dquotahost.python.start.seconds); a plugin hangs while it is imported, built or first called. The broker's"
                + " standard error, or with python.process=child its log, has Python's stack");
    }

    /** The value at the start counts, since python.process cannot change live. */
    private boolean inChild() {
        return host.started.inChild();
    }

    private Life life(BrokerConfigs config, CompletableFuture<PythonEnvironment> environment) {
        return inChild() ? new Child(host, config, environment, false) : new Life.InBroker(host, config, environment);
    }

    /** Resolves python.executable again; the property itself stays as it was at the start. */
    private CompletableFuture<PythonEnvironment> environment() {
        var found = new CompletableFuture<PythonEnvironment>();
        PythonEnvironment.apart(() -> {
            try {
                found.complete(PythonEnvironment.of(host.started.executable(), inChild()));
            } catch (Throwable e) {
                found.completeExceptionally(e);
            } finally {
                found.complete(null); // if the heap is full, both calls above may have failed; this one allocates nothing
            }
        });
        return found;
    }

    private static void await(CompletableFuture<?> step, long timeoutMs, String problem) {
        try {
            step.get(timeoutMs, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            throw new ConfigException(problem);
        } catch (ExecutionException e) {
            throw (ConfigException) e.getCause();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new ConfigException("interrupted while the Python host started");
        }
    }

    private boolean closing() {
        return closing.getCount() == 0;
    }

    /** Tells Python to end, and that no other life follows. This waits for nothing. */
    void end() {
        closing.countDown();
        drop();
        if (serving != null) closeServing();
    }

    private void closeServing() {
        serving.close();
        host.inbox.postEvent("closing", List.of()); // wakes Python, which learns from the next batch that it must end
    }

    /** Waits until the thread has ended, at most so many ms. */
    void awaitEnd(long atMostMs) {
        if (thread == null) return;
        try {
            thread.join(atMostMs);
            if (!thread.isAlive()) return;
            LOG.warn("The Python host did not end within {} ms: a plugin or an import hangs", atMostMs);
            serving.kill("it did not end in time");
            if (inChild()) thread.join(KILL_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    // ---- the host thread --------------------------------------------------------------------------------------

    private void run() {
        int shortLives = 0;
        LineLimit lines = new LineLimit(1);
        String problem = begin(first);
        while (true) {
            try {
                while (problem == null) problem = look();
                problem = serving.end(problem);
                if (closing() || !Life.isDone(first.ready)) return;
                Child next = followed();
                if (next == null) {
                    restarts = restarts + 1;
                    shortLives = serving.seconds() < LONG_LIFE_SECONDS ? shortLives + 1 : 1;
                    long pauseMs = pause(shortLives);
                    LOG.error("The Python host ended; it starts again in {} ms. {}", pauseMs, problem);
                    next = upgradeWithin(pauseMs);
                    if (closing()) return;
                }
                serving.calls.giveBack();
                host.inbox.replay(); // the next Python does not know the quotas and the cluster
                if (next != null) {
                    takeTurn(next);
                    shortLives = 0; // those were of another version
                    problem = null;
                } else {
                    // A Python that did not become ready may have been upgraded to one that does not work, so it is probed again.
                    boolean asksAgain = inChild() && !Life.isDone(serving.ready);
                    serving = life(serving.inForce, asksAgain ? environment() : serving.environment);
                    problem = begin(serving);
                    showOld();
                }
                if (closing()) closeServing();
            } catch (Throwable e) { // for example a full heap, or a thread that cannot be made: the next turn may succeed
                failed(problem, lines, e);
                LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(LOOK_MS));
            }
        }
    }

    /** Returns the upgrade that can follow within so many ms, or null. A Python that ends repeatedly must not delay an upgrade. */
    private Child upgradeWithin(long ms) throws InterruptedException {
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms);
        Child next = null;
        while (next == null && System.nanoTime() < until && !closing.await(LOOK_MS, TimeUnit.MILLISECONDS)) {
            prepare();
            next = followed();
        }
        return next;
    }

    /** Logs a failure of this thread's loop. All of it is guarded: if the heap is full, even the first use of a text fails. */
    private void failed(String problem, LineLimit lines, Throwable e) {
        try {
            Schedule.failed("Supervising Python", lines, e);
            if (problem != null) serving.kill("its supervision failed");
        } catch (Throwable again) {
            // The next turn comes whether this was logged or not.
        }
    }

    /** Reports a life with the properties from before the last change, which may have ended Python. A waiting upgrade follows. */
    private void showOld() {
        if (serving.isFor(host.config) || upgrades(host.config)) return;
        host.gauges.set("Host", "", "ConfigRefused", 1);
        LOG.error("The Python host starts with the properties from before the last change. If the gauge ConfigRefused"
                + " stays 1, change any live property once more");
    }

    /** Begins a life. Returns null, or why that failed: for example if no thread can be made, a later life may begin. */
    private static String begin(Life life) {
        try {
            life.begin();
            return null;
        } catch (Throwable e) {
            Throwable why = e instanceof CompletionException ? e.getCause() : e;
            life.kill("it could not begin");
            return why instanceof ConfigException ? why.getMessage() : why.toString();
        }
    }

    /** Returns why the serving life has ended, or null. */
    private String look() throws InterruptedException {
        if (serving.ended(LOOK_MS)) return serving.cause();
        killOverdue(serving);
        prepare();
        return null;
    }

    private void killOverdue(Life life) {
        int steps = life.starting.isDone() ? 2 : 1; // first Python reads its settings, then it builds its plugins
        if (!closing() && life.closingFor(END_SECONDS)) {
            life.kill("it did not end in time for the next one"); // also if it is not ready yet
        } else if (Life.isDone(life.ready)) {
            if (host.lease.expired && host.lease.silent()) life.kill("it was silent for " + BrokerConfigs.PREFIX + "validity, and killed");
        } else if (!(life.waits() && Life.isDone(life.built)) && life.seconds() > steps * START_SECONDS) {
            life.kill("it was not ready in time, and killed; " + (steps == 1 ? "the machine is too busy, or an import hangs"
                    : "a plugin hangs while it is imported, built or first called"));
        }
    }

    /** Returns the pause in ms before the next life, after so many short lives in a row. */
    static long pause(int shortLives) {
        return Math.min(LONGEST_PAUSE_MS, SHORTEST_PAUSE_MS << Math.min(Math.max(0, shortLives - 2), 10));
    }

    // ---- python.generation ------------------------------------------------------------------------------------

    private boolean upgrades(BrokerConfigs config) {
        return !config.generation().equals(generation) && !config.generation().equals(refused);
    }

    /** Checks an administrator's change. Throws ConfigException if the new properties or the new Python cannot be used. */
    void check(BrokerConfigs next) {
        storedIsApplied = true;
        if (!upgrades(next)) host.questions.check(next);
        else if (!inChild()) throw new ConfigException(NO_CHILD);
        else await(candidate(next).built, CHECK_MS, "the new Python host was not built within " + CHECK_MS / 1_000
                    + " s; the old one stays. Try again");
    }

    /**
     * Makes Python take over what Kafka has applied. If the generation is new, the host thread makes an upgrade of it. The
     * caller holds the lock. At a start Kafka applies stored properties before it reports the cluster and before it serves a
     * request. Python has just started with the current python.executable, so the generation of that time is the one that
     * serves.
     */
    void apply(BrokerConfigs next) {
        storedIsApplied |= host.inbox.knowsCluster() || host.table.misses.sum() > 0;
        if (!storedIsApplied) generation = next.generation();
        if (!next.generation().equals(refused)) refused = null;
        if (upgrades(next) && !inChild()) {
            LOG.warn(NO_CHILD);
            refused = next.generation(); // a broker with a child may have stored it for all brokers: other changes must go on here
        }
        if (!upgrades(next)) reconfigure(next);
    }

    private void reconfigure(BrokerConfigs next) {
        host.inbox.postEvent("reconfigure", List.of(next.properties()));
    }

    /** Returns the upgrade for a request. An applied upgrade goes first: otherwise repeated requests would always cancel it. */
    private synchronized Child candidate(BrokerConfigs next) {
        boolean appliedGoesFirst = upgrade != null && upgrade.isFor(host.config) && !upgrade.isFor(next);
        if (appliedGoesFirst || serving.closing()) throw new ConfigException("an upgrade of Python is in progress; try again");
        return stage(next);
    }

    private synchronized Child stage(BrokerConfigs config) {
        if (upgrade == null || !upgrade.isFor(config)) {
            drop();
            upgrade = new Child(host, config, environment(), true);
        }
        return upgrade;
    }

    /** Continues the upgrade, if there is one; called on the host thread. */
    private synchronized void prepare() throws InterruptedException {
        if (serving.closing()) return;
        BrokerConfigs applied = host.config;
        if (upgrades(applied)) stage(applied);
        Child next = upgrade;
        if (next == null || !next.environment.isDone()) return;
        String problem = begin(next);
        if (problem != null) fail(next, problem);
        else if (next.ended(0)) fail(next, next.cause());
        else if (!Life.isDone(next.built)) killOverdue(next);
        else if (next.isFor(applied)) closeServing();
        else if (next.seconds() > STAGED_SECONDS) drop();
    }

    /** Returns the upgrade that follows the ended life; null if there is none, or not yet. */
    private synchronized Child followed() {
        Child next = upgrade;
        boolean follows = next != null && (serving.closing() || Life.isDone(next.built) && next.isFor(host.config));
        if (follows) serving.close(); // no other upgrade takes its place now; if the heap is full, it follows a turn later
        return follows ? next : null;
    }

    private synchronized void takeTurn(Life next) {
        Life before = serving;
        serving = next;
        upgrade = null;
        LOG.info("{}={}: {} ({}) has replaced {}", GENERATION, next.config.generation(), next,
                next.environment.join().executable(), before);
        generation = next.config.generation();
        host.gauges.set("Host", "", "ConfigRefused", 0);
        host.lease.renew();
        // Python gets what Kafka applied while the old life ended, in place of changes that the old life did not take.
        reconfigure(upgrades(host.config) ? next.config : host.config);
        serving.takeTurn();
    }

    private void fail(Life failed, String problem) {
        String why = failed.end(problem);
        upgrade = null;
        if (!failed.isFor(host.config)) return;
        refused = failed.config.generation();
        reconfigure(failed.config); // the other changed properties take effect
        LOG.error("The new Python host is refused and the old one stays, until {} is changed again: {}", GENERATION, why);
    }

    private synchronized void drop() {
        if (upgrade == null) return;
        upgrade.discard("a later change has replaced this one");
        upgrade = null;
    }
}
