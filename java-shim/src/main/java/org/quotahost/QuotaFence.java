package org.quotahost;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.quotahost.fence.Fence;
import org.quotahost.fence.ForwardingAuthorizer;
import org.quotahost.fence.InnerAuthorizer;
import org.quotahost.fence.UnseenMetrics;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What Kafka loads as authorizer.class.name: another authorizer, and the fence in front of it. While the state is
 * PAUSE, produce requests of all but the exempt are turned back before anything is appended. Quotas can't do that, as
 * Kafka throttles after the append; but if authorize() throws, KafkaApis answers with that error instead. Topic quotas
 * (TopicQuotas) turn requests to single topics back in the same way.
 *
 * <p>The inner authorizer is asked first, so that who lacks a right hears so. It is named by
 * client.quota.callback.fence.authorizer (InnerAuthorizer); without it it is Kafka's StandardAuthorizer.
 *
 * <p>A producer with acks=0 expects no answer: Kafka closes its connection instead (RequestHandlerHelper), and what it
 * sent is lost, as with any other error.
 *
 * <p>On Kafka 4.1 and newer the inner authorizer's metrics show only with MonitoredQuotaFence.
 */
public class QuotaFence extends ForwardingAuthorizer {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.fence");

    private boolean installed;

    @Override
    public void configure(Map<String, ?> configs) {
        forwardTo(InnerAuthorizer.of(configs));
        inner().configure(configs);
        giveMetrics();
        installed = Objects.toString(configs.get("process.roles"), "").contains("broker");
        if (installed) Fence.install();
        LOG.info("{} stands before {} ({}; \"none\" there is for clusters that had no authorizer)", getClass().getSimpleName(),
                InnerAuthorizer.describe(inner()), InnerAuthorizer.PROPERTY);
    }

    @Override
    public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
        List<AuthorizationResult> results = super.authorize(context, actions);
        if (Fence.holds()) {
            RuntimeException refusal = Fence.refusal(context, actions, results);
            if (refusal != null) throw refusal;
        }
        return results;
    }

    @Override
    public void close() throws IOException {
        if (installed) Fence.uninstall();
        installed = false;
        super.close();
    }

    /** From 4.1 on StandardAuthorizer can't work without metrics, and Kafka gives them only to a Monitorable. */
    void giveMetrics() {
        try {
            UnseenMetrics.giveTo(inner());
        } catch (NoClassDefFoundError e) {
            LOG.debug("This Kafka has no metrics for plugins: {}", e.toString());
        }
    }
}
