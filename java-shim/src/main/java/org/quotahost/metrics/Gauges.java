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

/**
 * Every number that the shim, the Python host and its plugins show: as MBeans quotahost:type=...[,name=...], which Kafka's
 * own registry and reporter make, and as a list for Prometheus (exporter.py) and for Kafka's own metrics.
 *
 * <p>A number of Java's is a function that is called when somebody reads it. JMX reads at any time and must not call
 * Python, so Python writes each of its numbers here when it changes. Any thread may call.
 */
public final class Gauges {
    private final Metrics metrics = new Metrics(new MetricConfig());
    private final Map<MetricName, Gauge> gauges = new LinkedHashMap<>();
    /** Python's numbers, as it has set them last. */
    private final Map<MetricName, Double> told = new ConcurrentHashMap<>();
    /** Python's threads may outlive the host: what they tell then makes no MBean, which nobody would take away. */
    private boolean closed;

    /** One number: type and name ("" for none) of its MBean, its attribute there, and the function that reads it. */
    public record Gauge(String type, String name, String attribute, DoubleSupplier value) {}

    public Gauges() {
        metrics.metrics().keySet().forEach(metrics::removeMetric); // the registry counts its metrics by one of its own
        JmxReporter reporter = new JmxReporter();
        reporter.contextChange(new KafkaMetricsContext("quotahost"));
        metrics.addReporter(reporter);
    }

    /** Adds a number, unless it is there. */
    public synchronized void add(String type, String name, String attribute, DoubleSupplier value) {
        MetricName metric = metric(type, name, attribute);
        if (closed || gauges.putIfAbsent(metric, new Gauge(type, name, attribute, value)) != null) return;
        metrics.addMetric(metric, (Measurable) (config, now) -> value.getAsDouble());
    }

    /** Adds a table to the MBean of a type; JMX alone shows it. */
    public synchronized void table(String type, String attribute, Supplier<TabularData> value) {
        metrics.addMetric(metric(type, "", attribute),
                (org.apache.kafka.common.metrics.Gauge<TabularData>) (config, now) -> value.get());
    }

    /** Shows another number in place of one of Python's, unless it is NaN: while Python cannot set that. */
    public void overrule(String type, String name, String attribute, DoubleSupplier instead) {
        MetricName metric = metric(type, name, attribute);
        add(type, name, attribute, () -> {
            double now = instead.getAsDouble();
            return Double.isNaN(now) ? told.getOrDefault(metric, 0.0) : now;
        });
    }

    /** Sets a number of Python's; the first call makes its gauge. */
    public synchronized void set(String type, String name, String attribute, double value) {
        MetricName metric = metric(type, name, attribute);
        told.put(metric, value);
        add(type, name, attribute, () -> told.getOrDefault(metric, 0.0));
    }

    /** Adds to a number of Python's, which begins at 0. */
    public synchronized void count(String type, String name, String attribute, double by) {
        set(type, name, attribute, told.getOrDefault(metric(type, name, attribute), 0.0) + by);
    }

    /** Takes away one MBean with all its numbers, unless Python has set none of them. */
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

    /** All numbers, in the order in which they came. */
    public synchronized List<Gauge> all() {
        return List.copyOf(gauges.values());
    }

    /** The names of the MBeans of a type in which an attribute has this value now. */
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
