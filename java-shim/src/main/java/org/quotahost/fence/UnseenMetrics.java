package org.quotahost.fence;

import java.util.LinkedHashMap;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.MetricValueProvider;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Monitorable;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.server.authorizer.Authorizer;

/** Metrics for an authorizer that can't do without, which no reporter shows. Loads on Kafka 4.1 and newer only. */
public final class UnseenMetrics implements PluginMetrics {
    private final Metrics metrics = new Metrics();

    private UnseenMetrics() {}

    public static void giveTo(Authorizer authorizer) {
        if (authorizer instanceof Monitorable monitorable) monitorable.withPluginMetrics(new UnseenMetrics());
    }

    @Override
    public MetricName metricName(String name, String description, LinkedHashMap<String, String> tags) {
        return metrics.metricName(name, "plugins", description, tags);
    }

    @Override
    public void addMetric(MetricName name, MetricValueProvider<?> value) {
        metrics.addMetric(name, value);
    }

    @Override
    public void removeMetric(MetricName name) {
        metrics.removeMetric(name);
    }

    @Override
    public Sensor addSensor(String name) {
        return metrics.sensor(name);
    }

    @Override
    public void removeSensor(String name) {
        metrics.removeSensor(name);
    }
}
