package org.quotahost;

import java.util.LinkedHashMap;
import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.Monitorable;
import org.apache.kafka.common.metrics.PluginMetrics;

/**
 * The callback that also shows its numbers among the broker's own metrics (KIP-877), and so to every metrics
 * reporter. A class of its own, since Monitorable doesn't exist before Kafka 4.1 and the callback must load there.
 */
public class MonitoredPythonQuotaCallback extends PythonQuotaCallback implements Monitorable {
    @Override
    public void withPluginMetrics(PluginMetrics metrics) {
        if (host() == null) return;
        for (Gauges.Gauge gauge : host().gaugesForCallback().all()) {
            LinkedHashMap<String, String> tags = new LinkedHashMap<>();
            tags.put("type", gauge.type());
            if (!gauge.name().isEmpty()) tags.put("name", gauge.name());
            metrics.addMetric(metrics.metricName(gauge.attribute(), "quotahost", tags),
                    (Gauge<Double>) (config, now) -> gauge.value().getAsDouble());
        }
    }
}
