package org.quotahost;

import java.util.LinkedHashMap;
import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.Monitorable;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.quotahost.metrics.Gauges;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * PythonQuotaCallback for Kafka 4.1 and newer, which also shows its numbers among the broker's own metrics (KIP-877), and so to
 * every metrics reporter. PythonQuotaCallback must load in Kafka 4.0, which has no Monitorable.
 */
public class MonitoredPythonQuotaCallback extends PythonQuotaCallback implements Monitorable {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.metrics");

    @Override
    public void withPluginMetrics(PluginMetrics metrics) {
        try {
            if (host() != null) host().gauges.all().forEach(gauge -> add(gauge, metrics));
        } catch (RuntimeException e) { // an exception here would stop the broker's start
            LOG.warn("The callback's numbers cannot be shown among the broker's own metrics: {}", e.toString());
        }
    }

    private static void add(Gauges.Gauge gauge, PluginMetrics metrics) {
        LinkedHashMap<String, String> tags = new LinkedHashMap<>();
        // The tag is not named "type": Kafka already has a key of that name in JMX, and a second one would stop the broker.
        tags.put("bean", gauge.type());
        if (!gauge.name().isEmpty()) tags.put("plugin", gauge.name());
        metrics.addMetric(metrics.metricName(gauge.attribute(), "quotahost", tags),
                (Gauge<Double>) (config, now) -> gauge.value().getAsDouble());
    }
}
