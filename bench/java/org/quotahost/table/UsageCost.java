package org.quotahost.table;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.JmxReporter;
import org.apache.kafka.common.metrics.KafkaMetricsContext;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Avg;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.quotahost.inbox.Batch;
import org.quotahost.inbox.Inbox;
import org.quotahost.util.Json;

/**
 * Measures what the task publish-usage costs in Java at each look: so many clients of one broker, all of them active,
 * with sensors and MBeans made by Kafka's own classes as ClientQuotaManager makes them.
 *
 * <p>Prints the ms of CPU time of a look and the bytes that it allocates, as medians, for each number of clients.
 */
public final class UsageCost {
    private static final int LOOKS = 60;
    private static final int MOST = 100;

    private UsageCost() {}

    public static void main(String[] args) throws Exception {
        measure(1_000, false); // until the JVM has compiled what is measured
        for (String clients : args) measure(Integer.parseInt(clients), true);
    }

    private static void measure(int clients, boolean print) {
        MetricConfig config = new MetricConfig().timeWindow(1, TimeUnit.SECONDS).samples(11).quota(new Quota(1e6, true));
        JmxReporter reporter = new JmxReporter();
        reporter.configure(Map.of());
        try (Metrics metrics = new Metrics(config, new ArrayList<>(List.of(reporter)), Time.SYSTEM,
                new KafkaMetricsContext("kafka.server"))) {
            QuotaTable table = new QuotaTable(new Inbox());
            double[] unlimited = {Double.NaN, Double.NaN, Double.NaN, Double.NaN};
            String[] all = {"PRODUCE", "FETCH"};
            table.configure(2 * clients + 100, 3_600, 35_000, all, false, unlimited, all);
            for (int n = 0; n < clients; n++) {
                Map<String, String> tags = Map.of("user", "ANONYMOUS", "client-id", "client-" + n);
                Sensor sensor = metrics.sensor("Produce-" + n);
                sensor.add(metrics.metricName("byte-rate", "Produce", "", tags), new Rate());
                sensor.record(n);
                Sensor delay = metrics.sensor("ProduceThrottleTime-" + n);
                delay.add(metrics.metricName("throttle-time", "Produce", "", tags), new Avg());
                delay.record(n % 10);
                publish(table, "client-" + n);
            }
            look(table, clients, print);
        }
    }

    @SuppressWarnings("unchecked")
    private static void publish(QuotaTable table, String clientId) {
        var batch = new Batch(List.of(new Batch.Lookup("ANONYMOUS", clientId, 0)), List.of());
        double[] rates = {1e6, 1e6, 1e6, 1e6};
        table.publish(batch, new int[1], new int[4], rates, new String[0], new int[4], new String[] {"static"}, new int[] {-1},
                new Set[0], new String[] {""});
        table.tags(0, KafkaPrincipal.ANONYMOUS, clientId);
    }

    private static void look(QuotaTable table, int clients, boolean print) {
        Dump dump = new Dump(table);
        var thread = (com.sun.management.ThreadMXBean) java.lang.management.ManagementFactory.getThreadMXBean();
        long[] nanos = new long[LOOKS];
        long[] bytes = new long[LOOKS];
        for (int i = 0; i < LOOKS; i++) {
            long before = thread.getCurrentThreadAllocatedBytes();
            long began = thread.getCurrentThreadCpuTime();
            var rows = dump.usage(MOST);
            if (rows.size() != Math.min(MOST, clients)) throw new AssertionError("rows are missing: " + rows.size());
            Json.text(rows);
            nanos[i] = thread.getCurrentThreadCpuTime() - began;
            bytes[i] = thread.getCurrentThreadAllocatedBytes() - before;
        }
        if (print) System.out.printf("%d %.2f %.1f%n", clients, median(nanos) / 1e6, median(bytes) / 1e3);
    }

    /** Of the second half, since the JVM compiles during the first. */
    private static long median(long[] all) {
        return java.util.Arrays.stream(all, all.length / 2, all.length).sorted().skip(all.length / 4).findFirst().orElseThrow();
    }
}
