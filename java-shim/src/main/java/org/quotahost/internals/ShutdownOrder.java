package org.quotahost.internals;

import org.jpype.JPypeContext;

/**
 * Makes JPype delay its shutdown until Kafka has shut down. JPype's shutdown hook interrupts every non-daemon thread, which
 * would make a broker stop uncleanly. But it first waits for the hooks that are registered with it, and ours waits for Kafka's.
 * Neither JPypeContext nor the name of Kafka's hook is public API.
 */
public final class ShutdownOrder {
    /** The JVM starts its hooks one after the other, so Kafka's may start late. A JVM without Kafka's hook waits this long. */
    private static final long APPEARS_WITHIN_MS = 1_000;

    private ShutdownOrder() {}

    static boolean ofJPype() throws ReflectiveOperationException {
        Class.forName("org.jpype.JPypeContext", false, ShutdownOrder.class.getClassLoader())
                .getMethod("addShutdownHook", Thread.class);
        return true;
    }

    /** Registers the hook, once, after JPype has started. If this fails, the broker still starts. */
    public static void keep() {
        try {
            JPypeContext.getInstance().addShutdownHook(new Thread(ShutdownOrder::awaitKafka, "quotahost-shutdown"));
        } catch (RuntimeException | LinkageError e) {
            Internals.SHUTDOWN_ORDER.failed(e);
        }
    }

    private static void awaitKafka() {
        long deadline = System.nanoTime() + APPEARS_WITHIN_MS * 1_000_000;
        try {
            for (boolean found = false; !found && System.nanoTime() < deadline; Thread.sleep(10)) {
                for (Thread hook : Thread.getAllStackTraces().keySet()) {
                    if (!hook.getName().equals("kafka-shutdown-hook")) continue;
                    found = true;
                    hook.join();
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
