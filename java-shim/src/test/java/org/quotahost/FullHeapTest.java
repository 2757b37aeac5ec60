package org.quotahost;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.quotahost.inbox.Inbox;
import org.quotahost.util.Schedule;

/** A heap that is full for some moments, in a JVM of its own: necessary work goes on, and the host can rest. */
class FullHeapTest {
    private static final int FILLS = 20, SCHEDULES = 10, PRODUCERS = 4;

    @Test
    @Timeout(120)
    void noTurnIsLostAndNoPostCountsThatTheHostCannotTake() throws Exception {
        Process jvm = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx16m",
                "-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path"), Main.class.getName())
                .redirectError(ProcessBuilder.Redirect.DISCARD).start();
        String told = new String(jvm.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals("turns come again\nthe inbox is empty\n", told);
    }

    /** The program of the other JVM. */
    static final class Main {
        private static final AtomicInteger[] TURNS = new AtomicInteger[SCHEDULES];
        private static final Inbox INBOX = new Inbox();
        private static volatile boolean posting = true;

        private record Filling(byte[] bytes, Filling rest) {}

        private Main() {}

        public static void main(String[] none) {
            for (int i = 0; i < SCHEDULES; i++) {
                AtomicInteger turns = TURNS[i] = new AtomicInteger();
                new Schedule("turns-" + i).every(1 + i, "a turn", turns::incrementAndGet);
            }
            for (int i = 0; i < PRODUCERS; i++) start("producer-" + i, Main::post);
            start("host", () -> INBOX.take(5));
            for (int i = 0; i < FILLS; i++) {
                fill();
                LockSupport.parkNanos(20_000_000);
            }
            posting = false;
            int[] before = new int[SCHEDULES];
            for (int i = 0; i < SCHEDULES; i++) before[i] = TURNS[i].get();
            for (int i = 0; i < SCHEDULES; i++) {
                int at = i;
                await(() -> TURNS[at].get() > before[at]);
            }
            System.out.println("turns come again");
            await(() -> INBOX.depth() == 0);
            System.out.println("the inbox is empty");
            System.exit(0);
        }

        /** Fills the heap with smaller and smaller pieces, and then frees it. */
        private static void fill() {
            Filling all = null;
            for (int size : new int[] {1 << 16, 1 << 10, 64, 8}) {
                try {
                    while (true) all = new Filling(new byte[size], all);
                } catch (OutOfMemoryError full) {
                    LockSupport.parkNanos(2_000_000);
                }
            }
            if (all == null) throw new IllegalStateException("nothing was filled");
        }

        private static void post() {
            String principal = Thread.currentThread().getName();
            List<String> ids = new ArrayList<>();
            for (int i = 0; i < 20 && posting; i++) ids.add(Long.toString(System.nanoTime()));
            ids.forEach(id -> INBOX.postClient(principal, id));
            LockSupport.parkNanos(200_000);
        }

        /** Runs the work again and again, whatever it throws. */
        private static void start(String name, Runnable work) {
            Thread thread = new Thread(() -> {
                while (true) {
                    try {
                        work.run();
                    } catch (OutOfMemoryError full) {
                        LockSupport.parkNanos(1_000);
                    }
                }
            }, name);
            thread.setDaemon(true);
            thread.start();
        }

        private static void await(BooleanSupplier condition) {
            long end = System.nanoTime() + 30_000_000_000L;
            while (!condition.getAsBoolean()) {
                if (System.nanoTime() - end > 0) System.exit(1);
                LockSupport.parkNanos(1_000_000);
            }
        }
    }
}
