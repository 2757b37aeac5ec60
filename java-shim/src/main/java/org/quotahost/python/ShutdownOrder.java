package org.quotahost.python;

import java.util.Optional;
import org.jpype.JPypeContext;

/**
 * Lets Kafka shut down before JPype does. JPype's own shutdown hook interrupts every non-daemon thread, which
 * makes a broker stop uncleanly; but it first waits for the hooks registered with it, and this one waits for Kafka's.
 */
final class ShutdownOrder {
    static final String KAFKA_HOOK = "kafka-shutdown-hook";
    /** Hooks start one after the other; a JVM without Kafka's (a test) is not held longer than this. */
    private static final long APPEARS_WITHIN_MS = 1_000;

    private ShutdownOrder() {}

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
