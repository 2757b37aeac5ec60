package org.quotahost;

import org.apache.kafka.common.metrics.Monitorable;
import org.apache.kafka.common.metrics.PluginMetrics;

/**
 * QuotaFence for Kafka 4.1 and newer, which also hands the broker's metrics to the inner authorizer (KIP-877), so that the
 * metrics of Kafka's StandardAuthorizer stay as they were. QuotaFence must load in Kafka 4.0, which has no Monitorable.
 */
public final class MonitoredQuotaFence extends QuotaFence implements Monitorable {
    @Override
    public void withPluginMetrics(PluginMetrics metrics) {
        if (inner instanceof Monitorable monitorable) monitorable.withPluginMetrics(metrics);
    }

    /** Does nothing, since Kafka calls withPluginMetrics() right after configure(). */
    @Override
    void giveMetrics() {}
}
