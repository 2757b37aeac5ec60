package org.quotahost.table;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.JmxReporter;
import org.apache.kafka.common.metrics.KafkaMetricsContext;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Avg;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.quota.ClientQuotaType;

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
            List<Usage> used = new ArrayList<>();
            for (int n = 0; n < clients; n++) {
                Map<String, String> tags = Map.of("user", "ANONYMOUS", "client-id", "client-" + n);
                Sensor sensor = metrics.sensor("Produce-" + n);
                sensor.add(metrics.metricName("byte-rate", "Produce", "", tags), new Rate());
                sensor.record(n);
                Sensor delay = metrics.sensor("ProduceThrottleTime-" + n);
                delay.add(metrics.metricName("throttle-time", "Produce", "", tags), new Avg());
                delay.record(n % 10);
                used.add(usage("ANONYMOUS", "client-" + n));
            }
            look(used, print);
        }
    }

    private static Usage usage(String principal, String clientId) {
        return new Usage(ClientQuotaType.PRODUCE, principal, clientId, new Tags(principal, clientId), 1e6, 0);
    }

    private static void look(List<Usage> used, boolean print) {
        var thread = (com.sun.management.ThreadMXBean) java.lang.management.ManagementFactory.getThreadMXBean();
        long[] nanos = new long[LOOKS];
        long[] bytes = new long[LOOKS];
        for (int i = 0; i < LOOKS; i++) {
            long before = thread.getCurrentThreadAllocatedBytes();
            long began = thread.getCurrentThreadCpuTime();
            if (Usage.lines(used, MOST).length != Math.min(MOST, used.size())) throw new AssertionError("lines are missing");
            nanos[i] = thread.getCurrentThreadCpuTime() - began;
            bytes[i] = thread.getCurrentThreadAllocatedBytes() - before;
        }
        if (print) System.out.printf("%d %.2f %.1f%n", used.size(), median(nanos) / 1e6, median(bytes) / 1e3);
    }

    /** Of the second half, since the JVM compiles during the first. */
    private static long median(long[] all) {
        return java.util.Arrays.stream(all, all.length / 2, all.length).sorted().skip(all.length / 4).findFirst().orElseThrow();
    }
}
