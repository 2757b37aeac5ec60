package org.quotahost;

import java.util.LinkedHashMap;
import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.Monitorable;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.quotahost.metrics.Gauges;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The callback that also shows its numbers among the broker's own metrics (KIP-877), and so to every metrics
 * reporter. A class of its own, since Monitorable doesn't exist before Kafka 4.1 and the callback must load there.
 */
public class MonitoredPythonQuotaCallback extends PythonQuotaCallback implements Monitorable {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.metrics");

    @Override
    public void withPluginMetrics(PluginMetrics metrics) {
        try {
            if (host() != null) add(metrics);
        } catch (RuntimeException e) { // with it Kafka would not start
            LOG.warn("The callback's numbers are not among the broker's own metrics: {}", e.toString());
        }
    }

    private void add(PluginMetrics metrics) {
        for (Gauges.Gauge gauge : host().gaugesForCallback().all()) {
            LinkedHashMap<String, String> tags = new LinkedHashMap<>();
            tags.put("bean", gauge.type()); // "type" is a key of Kafka's own in JMX, and a second one stops the broker
            if (!gauge.name().isEmpty()) tags.put("plugin", gauge.name());
            metrics.addMetric(metrics.metricName(gauge.attribute(), "quotahost", tags),
                    (Gauge<Double>) (config, now) -> gauge.value().getAsDouble());
        }
    }
}
