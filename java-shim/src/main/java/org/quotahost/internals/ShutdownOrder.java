package org.quotahost.internals;

import java.util.Optional;
import org.jpype.JPypeContext;

/**
 * Has JPype wait with its shutdown until Kafka has shut down.
 *
 * <p>JPype's shutdown hook interrupts every non-daemon thread, which would make a broker stop uncleanly. But first it
 * waits for the hooks that are registered with it, and the one that this class registers waits for Kafka's. Neither
 * JPypeContext nor the name of Kafka's hook is public API.
 */
public final class ShutdownOrder {
    /** The JVM starts its hooks one after the other, so Kafka's may be late; in a JVM without it this is the wait. */
    private static final long APPEARS_WITHIN_MS = 1_000;

    private ShutdownOrder() {}

    static boolean ofJPype() throws ReflectiveOperationException {
        Class.forName("org.jpype.JPypeContext", false, ShutdownOrder.class.getClassLoader())
                .getMethod("addShutdownHook", Thread.class);
        return true;
    }

    /** Registers the hook; once, after JPype has started. Where that can't be done the broker starts all the same. */
    public static void keep() {
        try {
            JPypeContext.getInstance().addShutdownHook(new Thread(ShutdownOrder::awaitKafka, "quotahost-shutdown"));
        } catch (RuntimeException | LinkageError e) {
            Internals.SHUTDOWN_ORDER.failed(e.toString());
        }
    }

    private static void awaitKafka() {
        try {
            long deadline = System.nanoTime() + APPEARS_WITHIN_MS * 1_000_000;
            Optional<Thread> hook;
            while ((hook = kafkasHook()).isEmpty() && System.nanoTime() < deadline) Thread.sleep(10);
            if (hook.isPresent()) hook.get().join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static Optional<Thread> kafkasHook() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().equals("kafka-shutdown-hook")).findAny();
    }
}
