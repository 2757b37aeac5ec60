package org.quotahost.host;

import static org.quotahost.python.PythonEnvironment.START_SECONDS;

import java.util.function.LongSupplier;
import org.quotahost.util.BrokerConfigs;

/**
 * How long the broker's start still waits for Python, and the sentence that says which wait was too long.
 *
 * <p>Python has some time to start and to read the settings; then start.timeout, which is one of them, runs for the
 * plugins. The interpreter's probe comes before both and has a limit of its own (PythonEnvironment).
 */
final class StartDeadline {
    private final LongSupplier nanoClock;
    private volatile Wait wait;

    private record Wait(long until, String problem) {}

    /** @param nanoClock System::nanoTime, or a test's clock */
    StartDeadline(LongSupplier nanoClock) {
        this.nanoClock = nanoClock;
        start();
    }

    /** Python's thread starts now. */
    void start() {
        set(START_SECONDS * 1_000, "Python did not start and read its settings within " + START_SECONDS
                + " s (-Dquotahost.python.start.seconds): the machine is too busy, or an import hangs");
    }

    /** Python has read the settings; the plugins have this much time from now on. */
    void plugins(long timeoutMs) {
        set(timeoutMs, "the Python host was not ready in time (" + BrokerConfigs.PREFIX + "start.timeout=" + timeoutMs
                + " ms); a plugin hangs while it is imported or built. See the log above");
    }

    long leftNanos() {
        return wait.until - nanoClock.getAsLong();
    }

    /** What took too long, once nothing is left. */
    String problem() {
        return wait.problem;
    }

    private void set(long ms, String problem) {
        wait = new Wait(nanoClock.getAsLong() + ms * 1_000_000, problem);
    }
}
