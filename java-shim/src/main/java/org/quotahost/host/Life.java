package org.quotahost.host;

import java.io.IOException;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.config.ConfigException;
import org.quotahost.python.Interpreter;
import org.quotahost.python.PythonEnvironment;
import org.quotahost.util.BrokerConfigs;

/**
 * One life of the Python host: in this process (InBroker), or in a process of its own (Child).
 *
 * <p>The host thread begins a life (Lives). Python reads its settings (starting), builds its plugins (built) and puts them into
 * force (ready). Then Python works by its Calls until Java tells it to end (close). A life that is to follow another one waits
 * between built and ready for its turn.
 */
abstract class Life {
    /** The properties with which this life begins. */
    final BrokerConfigs config;
    /** The properties that this life has put into force last; the next life begins with them. */
    volatile BrokerConfigs inForce;
    /** The interpreter of this life; a ConfigException if it cannot work. */
    final CompletableFuture<PythonEnvironment> environment;
    final Calls calls;
    final CompletableFuture<Void> starting = new CompletableFuture<>();
    final CompletableFuture<Void> built = new CompletableFuture<>();
    final CompletableFuture<Void> ready = new CompletableFuture<>();
    /** Completed when the life before this one has ended; with an exception if this life gets no turn. */
    private final CompletableFuture<Void> turn = new CompletableFuture<>();
    /** When this life began or got its turn. */
    volatile long since = System.nanoTime();
    /** When this life was told to end; null until then. */
    private volatile Long closedAt;
    /** Why this life ends: Python's own reason, or else what Java found. */
    private volatile String why;

    /** @param waits whether this life waits for its turn, because another one serves */
    Life(PythonHost host, BrokerConfigs config, CompletableFuture<PythonEnvironment> environment, boolean waits) {
        this.config = config;
        inForce = config;
        this.environment = environment;
        calls = new Calls(host, this);
        if (!waits) turn.complete(null);
    }

    // ---- what differs between the two forms; on the host thread, except kill ----------------------------------

    /** Starts Python when its environment is known. Throws CompletionException or ConfigException if that is impossible. */
    abstract void begin() throws IOException;

    /** Runs Python, or looks after it for so many ms. Returns whether it has ended. */
    abstract boolean ended(long waitMs) throws InterruptedException;

    /** Releases the resources of an ended life, and returns why it ended. */
    abstract String cause();

    /** Ends Python immediately, if that is possible. */
    abstract void kill(String why);

    /** Python in this process, on the host thread. Only Python itself can end this life. */
    static final class InBroker extends Life {
        private boolean served;
        private String problem;
        private Throwable error;

        InBroker(PythonHost host, BrokerConfigs config, CompletableFuture<PythonEnvironment> environment) {
            super(host, config, environment, false);
        }

        @Override
        void begin() {
            PythonHost.calls = calls;
            Interpreter.start(environment.join());
        }

        /** Serves once, however often this is called: the next life begins with all that a host has to know. */
        @Override
        boolean ended(long waitMs) {
            if (served) return true;
            served = true;
            try {
                problem = Interpreter.serve();
            } catch (Throwable e) {
                error = e; // if the heap is full, no text can be made of the error now
            }
            return true;
        }

        @Override
        String cause() {
            return problem != null ? problem : error != null ? error.toString() : "the Python host ended at once";
        }

        @Override
        void kill(String why) {}
    }

    // ---- its start and its end --------------------------------------------------------------------------------

    /** Returns the seconds since this life began or got its turn. */
    double seconds() {
        return (System.nanoTime() - since) / 1e9;
    }

    boolean isFor(BrokerConfigs other) {
        return config.properties().equals(other.properties());
    }

    boolean waits() {
        return !isDone(turn);
    }

    /** Returns whether this life has reached a step, and has not ended before that. */
    static boolean isDone(CompletableFuture<?> step) {
        return step.isDone() && !step.isCompletedExceptionally();
    }

    /** Notes that the plugins are built, and waits for this life's turn. */
    void awaitTurn() {
        built.complete(null);
        turn.join();
    }

    /** Gives this life its turn, since the life before it has ended. */
    void takeTurn() {
        since = System.nanoTime();
        turn.complete(null);
    }

    /** Notes that this life ends or has ended: all threads that wait for its start get the reason. Returns the first problem. */
    synchronized String end(String problem) {
        if (why == null) why = problem;
        for (CompletableFuture<?> step : List.of(starting, built, ready, turn)) step.completeExceptionally(new ConfigException(why));
        return why;
    }

    /** Tells Python to end; Python learns this with its next batch. */
    void close() {
        closedAt = System.nanoTime();
    }

    boolean closing() {
        return closedAt != null;
    }

    /** Returns whether this life still runs so many seconds after it was told to end. */
    boolean closingFor(double seconds) {
        Long told = closedAt;
        return told != null && (System.nanoTime() - told) / 1e9 > seconds;
    }
}
