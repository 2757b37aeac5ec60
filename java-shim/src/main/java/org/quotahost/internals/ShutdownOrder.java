package org.quotahost.internals;

import java.util.Optional;
import org.jpype.JPypeContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Has JPype wait with its shutdown until Kafka has shut down.
 *
 * <p>JPype's shutdown hook interrupts every non-daemon thread, which would make a broker stop uncleanly. But first it
 * waits for the hooks that are registered with it, and the one that this class registers waits for Kafka's. Neither
 * JPypeContext nor the name of Kafka's hook is public API.
 */
public final class ShutdownOrder {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.internals");
    private static final String KAFKA_HOOK = "kafka-shutdown-hook";
    /**
     * The JVM starts its hooks one after the other, so Kafka's may be late; in a JVM without Kafka's (a test) this is
     * the wait.
     */
    private static final long APPEARS_WITHIN_MS = 1_000;

    private ShutdownOrder() {}

    /** Registers the hook; once, after JPype has started. Where that can't be done the broker starts all the same. */
    public static void keep() {
        try {
            JPypeContext.getInstance().addShutdownHook(new Thread(ShutdownOrder::awaitKafka, "quotahost-shutdown"));
        } catch (RuntimeException | LinkageError e) {
            LOG.warn("org.jpype.JPypeContext.addShutdownHook is missing, so JPype interrupts the broker's threads in its"
                    + " shutdown, and the next start may have to recover logs: {}", e.toString());
        }
    }

    private static void awaitKafka() {
        try {
            long deadline = System.nanoTime() + APPEARS_WITHIN_MS * 1_000_000;
            Optional<Thread> hook = find();
            while (hook.isEmpty() && System.nanoTime() < deadline) {
                Thread.sleep(10);
                hook = find();
            }
            if (hook.isPresent()) hook.get().join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static Optional<Thread> find() {
        return Thread.getAllStackTraces().keySet().stream().filter(t -> t.getName().equals(KAFKA_HOOK)).findAny();
    }
}
