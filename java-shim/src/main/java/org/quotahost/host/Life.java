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
 * <p>It begins on the host thread (Lives). Python reads its settings (starting), builds its plugins (built) and puts them in
 * force (ready); then it works by its Calls until it is told to end (close). One that is to follow another life waits between
 * built and ready for its turn.
 */
abstract class Life {
    /** With what it begins. */
    final BrokerConfigs config;
    /** The properties that it has put in force last, with which the life after it begins. */
    volatile BrokerConfigs inForce;
    /** The interpreter that it runs in; a ConfigException if that cannot work. */
    final CompletableFuture<PythonEnvironment> environment;
    final Calls calls;
    final CompletableFuture<Void> starting = new CompletableFuture<>();
    final CompletableFuture<Void> built = new CompletableFuture<>();
    final CompletableFuture<Void> ready = new CompletableFuture<>();
    /** Whose place it takes has ended; with an exception if it gets no turn. */
    private final CompletableFuture<Void> turn = new CompletableFuture<>();
    /** When it began, or had its turn. */
    volatile long since = System.nanoTime();
    /** When it was told to end; null until then. */
    private volatile Long closedAt;
    /** Why it ends: what Python has told, or else what was found. */
    private volatile String why;

    /** @param waits whether it waits for its turn, because another one serves */
    Life(PythonHost host, BrokerConfigs config, CompletableFuture<PythonEnvironment> environment, boolean waits) {
        this.config = config;
        inForce = config;
        this.environment = environment;
        calls = new Calls(host, this);
        if (!waits) turn.complete(null);
    }

    // ---- what differs between the two forms; on the host thread, but for kill ---------------------------------

    /** Starts Python, once its environment is known; CompletionException or ConfigException if that can't work. */
    abstract void begin() throws IOException;

    /** Runs Python, or looks after it for so many ms. Answers whether it has ended. */
    abstract boolean ended(long waitMs) throws InterruptedException;

    /** After its end: gives up what it had. Answers why it ended. */
    abstract String cause();

    /** Ends it at once, where that can be done. */
    abstract void kill(String why);

    /** Python in this process, on the host thread. Nobody can end it but itself. */
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

        /** It runs once, however often it is asked: the next one begins with all that a host has to know. */
        @Override
        boolean ended(long waitMs) {
            if (served) return true;
            served = true;
            try {
                problem = Interpreter.serve();
            } catch (Throwable e) {
                error = e; // where the heap is full, no text can be made of it now
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

    /** For how many seconds it has run, or had its turn. */
    double seconds() {
        return (System.nanoTime() - since) / 1e9;
    }

    boolean isFor(BrokerConfigs other) {
        return config.properties().equals(other.properties());
    }

    boolean waits() {
        return !isDone(turn);
    }

    /** Whether it has come so far, and has not ended before. */
    static boolean isDone(CompletableFuture<?> step) {
        return step.isDone() && !step.isCompletedExceptionally();
    }

    /** Its plugins are built; it waits for its turn. */
    void awaitTurn() {
        built.complete(null);
        turn.join();
    }

    /** The one before it has ended. */
    void takeTurn() {
        since = System.nanoTime();
        turn.complete(null);
    }

    /** It ends, or has ended: whoever waits for its start hears why. Answers the first problem. */
    synchronized String end(String problem) {
        if (why == null) why = problem;
        for (CompletableFuture<?> step : List.of(starting, built, ready, turn)) step.completeExceptionally(new ConfigException(why));
        return why;
    }

    /** Tells it to end, with the batch that it takes next. */
    void close() {
        closedAt = System.nanoTime();
    }

    boolean closing() {
        return closedAt != null;
    }

    /** Whether it goes on though it was told to end so many seconds ago. */
    boolean closingFor(double seconds) {
        Long told = closedAt;
        return told != null && (System.nanoTime() - told) / 1e9 > seconds;
    }
}
