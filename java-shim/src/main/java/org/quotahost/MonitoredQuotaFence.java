package org.quotahost;

import org.apache.kafka.common.metrics.Monitorable;
import org.apache.kafka.common.metrics.PluginMetrics;

/**
 * The fence that also hands the broker's metrics to the inner authorizer (KIP-877), so that Kafka's own of
 * StandardAuthorizer go on. A class of its own, since Monitorable doesn't exist before Kafka 4.1 and the fence must
 * load there.
 */
public final class MonitoredQuotaFence extends QuotaFence implements Monitorable {
    @Override
    public void withPluginMetrics(PluginMetrics metrics) {
        if (inner() instanceof Monitorable monitorable) monitorable.withPluginMetrics(metrics);
    }

    /** Kafka gives them right after configure(). */
    @Override
    void giveMetrics() {}
}
