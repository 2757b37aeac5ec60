package org.quotahost.python;

import java.util.Optional;
import org.jpype.JPypeContext;

/**
 * Has JPype wait with its shutdown until Kafka has shut down.
 *
 * <p>JPype's shutdown hook interrupts every non-daemon thread, which would make a broker stop uncleanly. But first it
 * waits for the hooks that are registered with it, and the one that this class registers waits for Kafka's.
 */
final class ShutdownOrder {
    static final String KAFKA_HOOK = "kafka-shutdown-hook";
    /**
     * The JVM starts its hooks one after the other, so Kafka's may be late; in a JVM without Kafka's (a test) this is
     * the wait.
     */
    private static final long APPEARS_WITHIN_MS = 1_000;

    private ShutdownOrder() {}

    /** Registers the hook; once, after JPype has started. */
    static void keep() {
        JPypeContext.getInstance().addShutdownHook(new Thread(ShutdownOrder::awaitKafka, "quotahost-shutdown"));
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
