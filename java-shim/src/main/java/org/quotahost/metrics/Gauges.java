package org.quotahost.metrics;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.DoubleSupplier;
import java.util.function.Supplier;
import javax.management.openmbean.TabularData;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.JmxReporter;
import org.apache.kafka.common.metrics.KafkaMetricsContext;
import org.apache.kafka.common.metrics.Measurable;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * All numbers that the shim, the Python host and its plugins show: as MBeans quotahost:type=...[,name=...], which Kafka's own
 * registry and reporter make, and as a list for Prometheus (exporter.py) and for Kafka's own metrics.
 *
 * <p>A number of Java's is a function that is called when somebody reads the number. JMX reads at any time and must not call
 * Python, so Python writes each of its numbers here when the number changes. Any thread may call this class.
 */
public final class Gauges {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.metrics");
    /** More of Python's numbers than a cluster of 1,000 brokers needs; each takes 1.3 kB of the broker's heap. */
    private static final int MOST = 100_000;

    private final int most;
    private final Metrics metrics = new Metrics(new MetricConfig());
    private final Map<MetricName, Gauge> gauges = new LinkedHashMap<>();
    /** Python's numbers, with their latest values. */
    private final Map<MetricName, Double> told = new ConcurrentHashMap<>();
    /** Whether the host has ended. Python's threads may outlive it, and nobody would remove an MBean that they make later. */
    private boolean closed;
    /** The first number that was left out, for the log; then "". */
    private volatile String leftOut;

    /** One number: type and name ("" for none) of its MBean, its attribute, and the function that reads it. */
    public record Gauge(String type, String name, String attribute, DoubleSupplier value) {}

    public Gauges() {
        this(MOST);
    }

    Gauges(int most) {
        this.most = most;
        metrics.metrics().keySet().forEach(metrics::removeMetric); // the registry counts its metrics in a metric of its own
        JmxReporter reporter = new JmxReporter();
        reporter.contextChange(new KafkaMetricsContext("quotahost"));
        metrics.addReporter(reporter);
    }

    /** Adds a number, unless it exists. */
    public synchronized void add(String type, String name, String attribute, DoubleSupplier value) {
        MetricName metric = metric(type, name, attribute);
        if (closed || gauges.putIfAbsent(metric, new Gauge(type, name, attribute, value)) != null) return;
        metrics.addMetric(metric, (Measurable) (config, now) -> value.getAsDouble());
    }

    /** Adds a table to the MBean of a type. Only JMX shows it. */
    public synchronized void table(String type, String attribute, Supplier<TabularData> value) {
        metrics.addMetric(metric(type, "", attribute),
                (org.apache.kafka.common.metrics.Gauge<TabularData>) (config, now) -> value.get());
    }

    /** Replaces one of Python's numbers by another one while Python cannot set its own; NaN means that Python's number counts. */
    public void overrule(String type, String name, String attribute, DoubleSupplier instead) {
        MetricName metric = metric(type, name, attribute);
        add(type, name, attribute, () -> {
            double now = instead.getAsDouble();
            return Double.isNaN(now) ? told.getOrDefault(metric, 0.0) : now;
        });
    }

    /** Sets a number of Python's. The first call makes its gauge, if there is room: a plugin may name its numbers after clients. */
    public synchronized void set(String type, String name, String attribute, double value) {
        MetricName metric = metric(type, name, attribute);
        if (told.size() >= most && !told.containsKey(metric)) {
            if (leftOut == null) leftOut = attribute + " of quotahost:type=" + type;
            return;
        }
        told.put(metric, value);
        add(type, name, attribute, () -> told.getOrDefault(metric, 0.0));
    }

    /** Adds to a number of Python's, which begins at 0. */
    public synchronized void count(String type, String name, String attribute, double by) {
        set(type, name, attribute, told.getOrDefault(metric(type, name, attribute), 0.0) + by);
    }

    /** Removes one MBean with all its numbers, unless Python has set none of them. */
    public synchronized void forget(String type, String name) {
        List<MetricName> all = gauges.keySet().stream()
                .filter(metric -> metric.group().equals(type) && metric.tags().getOrDefault("name", "").equals(name)).toList();
        if (all.stream().noneMatch(told::containsKey)) return;
        for (MetricName metric : all) {
            gauges.remove(metric);
            told.remove(metric);
            metrics.removeMetric(metric);
        }
    }

    /** Logs once that numbers are left out. */
    public void log() {
        String first = leftOut;
        if (first == null || first.isEmpty()) return;
        leftOut = "";
        LOG.warn("Plugins show {} numbers, and no more are kept; one of the others is {}", most, first);
    }

    /** Returns all numbers, in the order in which they were added. */
    public synchronized List<Gauge> all() {
        return List.copyOf(gauges.values());
    }

    /** Returns the names of the MBeans of a type in which an attribute has this value now. */
    public List<String> names(String type, String attribute, double value) {
        return all().stream().filter(gauge -> gauge.type.equals(type) && gauge.attribute.equals(attribute))
                .filter(gauge -> gauge.value.getAsDouble() == value).map(Gauge::name).toList();
    }

    public synchronized void close() {
        closed = true;
        metrics.close();
        gauges.clear();
    }

    private static MetricName metric(String type, String name, String attribute) {
        return new MetricName(attribute, type, "", name.isEmpty() ? Map.of() : Map.of("name", name));
    }
}
