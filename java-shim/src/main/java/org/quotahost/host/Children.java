package org.quotahost.host;

import static org.quotahost.python.PythonEnvironment.START_SECONDS;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.common.config.ConfigException;
import org.quotahost.python.PythonEnvironment;
import org.quotahost.util.BrokerConfigs;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs Python hosts in processes of their own: one that serves, and maybe one beside it that is to follow it.
 *
 * <p>The host thread starts every process and looks after it, since a process ends with the thread that started it. One that
 * is silent for validity is killed: its end is logged, and the next life begins (HostThread).
 *
 * <p>An upgrade is a new value of python.generation. A new process, of python.executable as it is then, builds its plugins
 * beside the one that serves, and waits: the change is refused if it can't (check). When Kafka applies the change, the
 * old process ends, and the new one takes its turn: the table, the factor and all known clients stay as they are, and who is
 * new meanwhile waits in the inbox. A change that only Kafka's storage brings is built first and applied then.
 */
final class Children {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.host");
    private static final long LOOK_MS = 50;
    /** How long an administrator's request waits for the new process; Kafka's own clients give up after 30 s. */
    private static final long CHECK_MS = 20_000;
    /** How long a process may wait for its turn; Kafka applies a change within a second of the verdict, or never. */
    private static final double STAGED_SECONDS = 60;
    /** How long a process may take to end before the next one has its turn. */
    private static final double END_SECONDS = 4;

    /** A change of python.generation, and the process for it. */
    private static final class Upgrade {
        final BrokerConfigs config;
        final CompletableFuture<PythonEnvironment> environment;
        /** Why it can't be built, "" if it is. */
        final CompletableFuture<String> verdict = new CompletableFuture<>();
        volatile boolean applied;
        volatile Child child;
        /** Since when the process before it has to end (System.nanoTime), 0 until then. */
        volatile long turnAt;

        Upgrade(BrokerConfigs config) {
            this.config = config;
            environment = CompletableFuture.supplyAsync(() -> PythonEnvironment.of(config.executable(), true));
        }

        boolean isFor(BrokerConfigs other) {
            return config.properties().equals(other.properties());
        }
    }

    private final PythonHost host;
    private PythonEnvironment environment;
    private volatile Child serving;
    private Upgrade upgrade;
    /** What Kafka has applied while an upgrade took place. */
    private BrokerConfigs later;
    /** What Kafka has applied and could not be built. */
    private Map<String, String> refused = Map.of();

    Children(PythonHost host, PythonEnvironment environment) {
        this.host = host;
        this.environment = environment;
    }

    // ---- the host thread -------------------------------------------------------------------------------------

    /** Runs a host, and those that follow it by an upgrade, until one ends without one to follow. Answers why it ended. */
    String live(Life life) throws InterruptedException {
        try {
            // One that did not come up may have been upgraded in a way that does not work.
            if (environment == null) environment = PythonEnvironment.of(host.config().executable(), true);
            serving = new Child(environment, life, new Calls(host, life));
        } catch (ConfigException | IOException e) {
            environment = null;
            return life.end(e.getMessage());
        }
        while (true) {
            if (serving.ended(LOOK_MS)) {
                String why = serving.end();
                if (!turn()) {
                    if (!serving.life.isReady()) environment = null;
                    return why; // an upgrade that is being built goes on, and comes to its turn in the next life
                }
            }
            killOverdue(serving);
            prepare();
        }
    }

    private void killOverdue(Child child) {
        double limit = START_SECONDS + (child.life.starting.isDone() ? child.life.startMs() / 1e3 : 0);
        if (child.life.isReady()) {
            if (host.lease.silent()) child.kill("it was silent for " + BrokerConfigs.PREFIX + "validity, and killed");
        } else if (!(child.life.waits() && child.life.isBuilt()) && child.seconds() > limit) {
            child.kill("it was not ready in time, and killed; a plugin hangs while it is imported or built");
        }
    }

    /** Goes on with the upgrade, if there is one. */
    private void prepare() throws InterruptedException {
        Upgrade next;
        synchronized (this) {
            next = upgrade;
        }
        if (next == null || !next.environment.isDone()) return;
        try {
            if (next.child == null) {
                Life life = new Life(next.config.properties(), true);
                Child child = new Child(next.environment.join(), life, new Calls(host, life));
                synchronized (this) {
                    next.child = child;
                    if (upgrade != next) child.discard();
                }
            }
        } catch (CompletionException | IOException e) {
            fail(next, e.getCause() == null ? e.getMessage() : e.getCause().getMessage());
            return;
        }
        if (next.child.ended(0)) {
            fail(next, next.child.end());
        } else if (next.child.life.isBuilt()) {
            next.verdict.complete("");
            if (next.applied) beginTurn(next);
            else if (next.child.seconds() > STAGED_SECONDS) drop();
        } else {
            killOverdue(next.child);
        }
    }

    private void beginTurn(Upgrade next) {
        if (next.turnAt == 0) {
            next.turnAt = System.nanoTime();
            serving.life.close();
            host.inbox.postEvent("closing", List.of()); // it wakes Python
        } else if ((System.nanoTime() - next.turnAt) / 1e9 > END_SECONDS) {
            serving.kill("it did not end in time for the next one");
        }
    }

    /** The serving process has ended: the next one has its turn, if there is one. */
    private boolean turn() {
        Upgrade next;
        BrokerConfigs then;
        synchronized (this) {
            next = upgrade;
            if (next == null || next.turnAt == 0) return false;
            upgrade = null;
            then = later;
            later = null;
        }
        LOG.info("The process {} has taken the place of {}: python.generation={}, {}", next.child.pid(), serving.pid(),
                next.config.generation(), next.environment.join().executable());
        serving.life.giveBack(host.inbox);
        serving = next.child;
        environment = next.environment.join();
        host.thread.goesOnWith(serving.life);
        host.hostQuestions.confirm(next.config.properties());
        host.gauges.set("Host", "", "ConfigRefused", 0);
        host.lease.renew();
        host.inbox.replay();
        serving.takeTurn();
        if (then != null) host.thread.apply(then);
        return true;
    }

    private synchronized void fail(Upgrade next, String problem) {
        if (upgrade == next) upgrade = null;
        next.verdict.complete(problem);
        if (!next.applied) return;
        refused = next.config.properties();
        host.gauges.set("Host", "", "ConfigRefused", 1);
        LOG.error("The new Python host is refused and the old one stays, until python.generation is changed again: {}", problem);
    }

    private synchronized void drop() {
        if (upgrade == null) return;
        if (upgrade.child != null) upgrade.child.discard();
        upgrade.verdict.complete("another change has taken the place of this one");
        upgrade = null;
    }

    // ---- those who change python.generation -------------------------------------------------------------------

    /** For an administrator's request: ConfigException if the new process can't be built, or not in time. */
    void check(BrokerConfigs config) {
        try {
            String problem = stage(config, false).verdict.get(CHECK_MS, TimeUnit.MILLISECONDS);
            if (!problem.isEmpty()) throw new ConfigException(problem);
        } catch (TimeoutException | ExecutionException e) {
            throw new ConfigException("the new Python host was not built within " + CHECK_MS / 1_000 + " s; the old one stays. Try again");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new ConfigException("interrupted while the new Python host was built");
        }
    }

    /** Kafka has applied the change. It waits for nothing. */
    synchronized void apply(BrokerConfigs config) {
        if (config.properties().equals(refused)) return; // a node has two callbacks
        if (upgrade != null && upgrade.turnAt != 0) {
            if (!upgrade.isFor(config)) later = config;
        } else {
            stage(config, true);
        }
    }

    private synchronized Upgrade stage(BrokerConfigs config, boolean applied) {
        if (upgrade != null && upgrade.turnAt != 0) throw new ConfigException("an upgrade takes place; try again");
        if (upgrade == null || !upgrade.isFor(config)) {
            drop();
            upgrade = new Upgrade(config);
        }
        upgrade.applied |= applied;
        return upgrade;
    }

    // ---- the end ---------------------------------------------------------------------------------------------

    /** The broker closes the host: nobody follows any more. */
    void close() {
        drop();
    }

    /** It has not ended in time. */
    void kill() {
        Child last = serving;
        if (last != null) last.kill("it did not end in time");
    }
}
