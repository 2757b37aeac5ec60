package org.quotahost.internals;

import java.util.LinkedHashMap;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.MetricValueProvider;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Monitorable;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.server.authorizer.Authorizer;

/**
 * Metrics that no reporter shows, for an inner authorizer that cannot work without any.
 *
 * <p>From Kafka 4.1 on StandardAuthorizer fails if nobody gives it metrics, and Kafka gives them only to the
 * authorizer that it loads itself, if that is a Monitorable. QuotaFence is none, so it gives these. The class loads
 * on Kafka 4.1 and newer only: PluginMetrics does not exist before.
 */
final class UnseenMetrics implements PluginMetrics {
    private final Metrics metrics = new Metrics();

    private UnseenMetrics() {}

    /** Gives metrics to an authorizer that wants them. */
    static void giveTo(Authorizer authorizer) {
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
