package org.quotahost;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.quotahost.fence.Creation;
import org.quotahost.fence.Exemptions;
import org.quotahost.fence.Fence;
import org.quotahost.fence.ForwardingAuthorizer;
import org.quotahost.fence.InnerAuthorizer;
import org.quotahost.internals.Internals;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The authorizer that Kafka loads by authorizer.class.name: another authorizer, with the fence in front of it.
 *
 * <p>While the state is PAUSE, the fence turns back the produce requests of all clients but the exempt, before
 * anything is appended. Quotas cannot do that, since Kafka throttles after the append; but if authorize() throws,
 * KafkaApis answers the request with that error. Topic quotas (TopicQuotas) turn requests to single topics back in
 * the same way.
 *
 * <p>The inner authorizer (InnerAuthorizer) is asked first, so that a client that lacks a right gets that answer. On a
 * controller the fence also refuses to create topics and partitions meanwhile (Creation).
 *
 * <p>A producer with acks=0 expects no answer. For it Kafka closes the connection instead (RequestHandlerHelper), and
 * the records that it sent are lost, as with any other error.
 *
 * <p>On Kafka 4.1 and newer the inner authorizer's metrics are visible only with MonitoredQuotaFence.
 */
public class QuotaFence extends ForwardingAuthorizer {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.fence");

    /** Whether the fence counts it as installed: only on a broker, since a controller gets no produce request. */
    private boolean installed;
    /** Whether this node is a controller, which alone is asked about creations. */
    private boolean controls;

    @Override
    public void configure(Map<String, ?> configs) {
        Internals.start(getClass());
        forwardTo(InnerAuthorizer.of(configs));
        inner().configure(configs);
        giveMetrics();
        String roles = Objects.toString(configs.get("process.roles"), "");
        controls = roles.contains("controller");
        installed = roles.contains("broker");
        Exemptions.superUsers(configs);
        if (installed) Fence.install();
        LOG.info("{} stands before {} ({}; \"none\" there is for clusters that had no authorizer)",
                getClass().getSimpleName(), inner().getClass().getName(), InnerAuthorizer.PROPERTY);
    }

    @Override
    public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
        List<AuthorizationResult> results = super.authorize(context, actions);
        RuntimeException error = Fence.error(context, actions, results);
        if (error == null && controls) error = Creation.error(context, actions, results);
        if (error != null) throw error;
        return results;
    }

    /** Kafka may close it twice. */
    @Override
    public void close() throws IOException {
        if (installed) Fence.uninstall();
        installed = false;
        super.close();
    }

    /** From Kafka 4.1 on StandardAuthorizer cannot work without metrics, and Kafka gives them only to a Monitorable. */
    void giveMetrics() {
        Consumer<Authorizer> giver = Internals.AUTHORIZER_METRICS.get();
        if (giver != null) giver.accept(inner());
    }
}
