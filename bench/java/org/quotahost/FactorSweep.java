package org.quotahost;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.net.InetAddress;
import java.util.Arrays;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.LongStream;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.QuotaType;
import org.quotahost.table.QuotaTable;
import org.quotahost.util.Schedule;

/**
 * Measures how long a request stalls in Kafka's quota manager while a factor goes from 1 to 0.1 and back to 1, with many
 * clients that each have a sensor; also with Kafka's own quotas, changed as often by an administrator. Each goes there twice.
 *
 * <p>Arguments: "quotahost" or "kafka", and the number of clients. The program prints the longest stall of a request in the
 * first pass; the longest and the 99.99th percentile in the second, in ms; the median CPU time in ms of Kafka's walk over all
 * sensors, which other programs disturb least; how often limits changed; and the heap that a client takes with its sensors.
 */
public final class FactorSweep {
    private static final int THREADS = 2;
    private static final long HALF_MS = 20_000;
    private static final long BEGAN = System.nanoTime();
    /** In ns of CPU time: a request that takes longer includes a walk over all sensors. */
    private static final long WALK = 2_000_000;
    private static final ThreadMXBean PROCESSOR = ManagementFactory.getThreadMXBean();
    private static final Queue<Long> walks = new ConcurrentLinkedQueue<>();

    private FactorSweep() {}

    public static void main(String[] args) throws Exception {
        int clients = Integer.parseInt(args[1]);
        boolean ours = args[0].equals("quotahost");
        long empty = heap();
        KafkaPrincipal[] principals = Filled.principals(clients);
        QuotaTable table = ours ? Filled.table(principals, 0) : null;
        long filled = heap();
        if (ours) watch(table);
        Optional<ClientQuotaCallback> callback = ours ? Optional.of(Filled.callback(table)) : Optional.empty();
        ClientQuotaManager manager = new ClientQuotaManager(new ClientQuotaManagerConfig(), new Metrics(), QuotaType.PRODUCE,
                Time.SYSTEM, "", callback.map(c -> Plugin.wrapInstance(c, null, "callback")));
        if (!ours) change(manager, 1e6);
        Session[] sessions = new Session[clients];
        for (int i = 0; i < clients; i++) sessions[i] = new Session(principals[i], InetAddress.getLoopbackAddress());
        for (Session each : sessions) request(manager, each);
        AtomicBoolean done = new AtomicBoolean();
        long[][] nanos = new long[THREADS][1 << 22];
        int[] counts = new int[THREADS];
        Thread[] threads = new Thread[THREADS];
        for (int t = 0; t < THREADS; t++) {
            int at = t;
            threads[t] = new Thread(() -> counts[at] = send(manager, sessions, done, nanos[at]));
            threads[t].start();
        }
        Thread.sleep(3_000); // until the JVM has compiled the code of a request
        heap(); // moves the new sensors, which a collection would do on the first way, in a stall longer than any walk's
        forget(nanos);
        sweep(table, manager); // the JVM has not yet compiled the code of the first walks
        long first = sorted(nanos).max().orElseThrow();
        forget(nanos);
        walks.clear();
        int changes = sweep(table, manager);
        done.set(true);
        for (Thread each : threads) each.join();
        long[] all = sorted(nanos).toArray();
        long[] sorted = walks.stream().mapToLong(Long::longValue).sorted().toArray();
        System.out.printf("%s %d first-longest %.2f longest %.2f p9999 %.2f walk %.2f changes %d requests %d table-bytes-a-client %d%n",
                args[0], clients, first / 1e6, all[all.length - 1] / 1e6, all[(int) (all.length * 0.9999)] / 1e6,
                sorted[sorted.length / 2] / 1e6, changes, all.length, (filled - empty) / clients);
        System.exit(0);
    }

    private static void forget(long[][] nanos) {
        for (long[] each : nanos) Arrays.fill(each, 0);
    }

    private static LongStream sorted(long[][] nanos) {
        return Arrays.stream(nanos).flatMapToLong(Arrays::stream).filter(each -> each > 0).sorted();
    }

    /** Returns how often limits were changed. Without a table, it changes Kafka's own quotas. */
    private static int sweep(QuotaTable table, ClientQuotaManager manager) throws InterruptedException {
        return table == null ? sweep(manager) : sweep(table);
    }

    private static int sweep(QuotaTable table) throws InterruptedException {
        int before = table.factorInForce.generation(0);
        table.factor(0.1, "full", null);
        Thread.sleep(HALF_MS);
        table.factor(1, "", null);
        Thread.sleep(HALF_MS);
        return table.factorInForce.generation(0) - before;
    }

    /** Beats as a broker does, from the start on: after a jump of the table's clock two threads would walk at the same time. */
    private static void watch(QuotaTable table) {
        new Schedule("watch").every(QuotaTable.BEAT_MS, "beat", () -> table.beat((System.nanoTime() - BEGAN) / 1_000_000));
    }

    /** Changes quotas as often as a factor moves limits: in steps of two percent, up to five a second. */
    private static int sweep(ClientQuotaManager manager) throws InterruptedException {
        int changes = 0;
        for (double rate = 1e6; rate > 1e5; rate *= 0.96, changes++) {
            change(manager, rate);
            Thread.sleep(200);
        }
        for (double rate = 1e5; rate < 1e6; rate *= 1.04, changes++) {
            change(manager, rate);
            Thread.sleep(200);
        }
        return changes;
    }

    private static void change(ClientQuotaManager manager, double rate) {
        noting(() -> manager.updateQuota(Optional.of(ClientQuotaManager.DEFAULT_USER_ENTITY),
                Optional.of(ClientQuotaManager.DEFAULT_USER_CLIENT_ID), Optional.of(Quota.upperBound(rate))));
    }

    private static void noting(Runnable work) {
        long before = PROCESSOR.getCurrentThreadCpuTime();
        work.run();
        long took = PROCESSOR.getCurrentThreadCpuTime() - before;
        if (took > WALK) walks.add(took);
    }

    private static int send(ClientQuotaManager manager, Session[] sessions, AtomicBoolean done, long[] nanos) {
        int count = 0;
        while (!done.get()) {
            Session session = sessions[ThreadLocalRandom.current().nextInt(sessions.length)];
            int at = count++ % nanos.length;
            noting(() -> {
                long before = System.nanoTime();
                request(manager, session);
                nanos[at] = System.nanoTime() - before;
            });
            LockSupport.parkNanos(20_000); // the usual time of a produce request
        }
        return count;
    }

    private static void request(ClientQuotaManager manager, Session session) {
        manager.maybeRecordAndGetThrottleTimeMs(session, Filled.CLIENT_ID, 10, Time.SYSTEM.milliseconds());
    }

    private static long heap() throws InterruptedException {
        for (int i = 0; i < 3; i++) {
            System.gc();
            Thread.sleep(100);
        }
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory();
    }
}
