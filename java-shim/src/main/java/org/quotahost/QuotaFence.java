package org.quotahost;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.Reconfigurable;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.errors.NotControllerException;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.metadata.authorizer.AclMutator;
import org.apache.kafka.metadata.authorizer.ClusterMetadataAuthorizer;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.authorizer.AuthorizerServerInfo;
import org.quotahost.fence.Creation;
import org.quotahost.fence.Exemptions;
import org.quotahost.fence.Fence;
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
 * <p>Everything else that Kafka asks is the inner authorizer's. Kafka gives the ACLs of its metadata log only to a
 * ClusterMetadataAuthorizer, so this class is one. If the inner authorizer is none, it keeps its ACLs itself, and
 * Kafka's are dropped.
 *
 * <p>On Kafka 4.1 and newer the inner authorizer's metrics are visible only with MonitoredQuotaFence.
 */
public class QuotaFence implements ClusterMetadataAuthorizer, Reconfigurable {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.fence");

    private Authorizer inner;
    /** The inner authorizer if it wants the ACLs of the metadata log, else null. */
    private ClusterMetadataAuthorizer acls;
    /** Whether the fence counts it as installed: only on a broker, since a controller gets no produce request. */
    private boolean installed;
    /** Whether this node is a controller, which alone is asked about creations. */
    private boolean controls;

    @Override
    public void configure(Map<String, ?> configs) {
        Internals.start(getClass());
        inner = InnerAuthorizer.of(configs);
        acls = inner instanceof ClusterMetadataAuthorizer known ? known : null;
        inner.configure(configs);
        giveMetrics();
        String roles = Objects.toString(configs.get("process.roles"), "");
        controls = roles.contains("controller");
        installed = roles.contains("broker");
        Exemptions.superUsers(configs);
        if (installed) Fence.install();
        LOG.info("{} stands before {} ({}; \"none\" there is for clusters that had no authorizer)",
                getClass().getSimpleName(), inner.getClass().getName(), InnerAuthorizer.PROPERTY);
    }

    @Override
    public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
        List<AuthorizationResult> results = inner.authorize(context, actions);
        RuntimeException error = Fence.error(context, actions, results);
        if (error == null && controls) error = Creation.error(context, actions, results);
        if (error != null) throw error;
        return results;
    }

    /** Kafka may close it twice, and one that it could not configure. */
    @Override
    public void close() throws IOException {
        if (installed) Fence.uninstall();
        installed = false;
        if (inner != null) inner.close();
    }

    Authorizer inner() {
        return inner;
    }

    /** From Kafka 4.1 on StandardAuthorizer cannot work without metrics, and Kafka gives them only to a Monitorable. */
    void giveMetrics() {
        Consumer<Authorizer> giver = Internals.AUTHORIZER_METRICS.get();
        if (giver != null) giver.accept(inner);
    }

    // ---- what is the inner authorizer's -----------------------------------------------------------------------

    @Override
    public Map<Endpoint, ? extends CompletionStage<Void>> start(AuthorizerServerInfo server) {
        return inner.start(server);
    }

    @Override
    public AuthorizationResult authorizeByResourceType(AuthorizableRequestContext context, AclOperation operation,
            ResourceType type) {
        return inner.authorizeByResourceType(context, operation, type);
    }

    @Override
    public List<? extends CompletionStage<AclCreateResult>> createAcls(AuthorizableRequestContext context,
            List<AclBinding> bindings) {
        return inner.createAcls(context, bindings);
    }

    @Override
    public List<? extends CompletionStage<AclDeleteResult>> deleteAcls(AuthorizableRequestContext context,
            List<AclBindingFilter> filters) {
        return inner.deleteAcls(context, filters);
    }

    @Override
    public Iterable<AclBinding> acls(AclBindingFilter filter) {
        return inner.acls(filter);
    }

    @Override
    public int aclCount() {
        return inner.aclCount();
    }

    // ---- ClusterMetadataAuthorizer ---------------------------------------------------------------------------

    @Override
    public void setAclMutator(AclMutator mutator) {
        if (acls != null) acls.setAclMutator(mutator);
    }

    @Override
    public AclMutator aclMutatorOrException() {
        if (acls == null) throw new NotControllerException(inner.getClass().getName() + " keeps its ACLs itself");
        return acls.aclMutatorOrException();
    }

    @Override
    public void completeInitialLoad() {
        if (acls != null) acls.completeInitialLoad();
    }

    @Override
    public void completeInitialLoad(Exception e) {
        if (acls != null) acls.completeInitialLoad(e);
    }

    @Override
    public void loadSnapshot(Map<Uuid, StandardAcl> all) {
        if (acls != null) acls.loadSnapshot(all);
    }

    @Override
    public void addAcl(Uuid id, StandardAcl acl) {
        if (acls != null) acls.addAcl(id, acl);
    }

    @Override
    public void removeAcl(Uuid id) {
        if (acls != null) acls.removeAcl(id);
    }

    // ---- Reconfigurable --------------------------------------------------------------------------------------

    @Override
    public Set<String> reconfigurableConfigs() {
        return inner instanceof Reconfigurable live ? live.reconfigurableConfigs() : Set.of();
    }

    @Override
    public void validateReconfiguration(Map<String, ?> configs) {
        if (inner instanceof Reconfigurable live) live.validateReconfiguration(configs);
    }

    @Override
    public void reconfigure(Map<String, ?> configs) {
        if (inner instanceof Reconfigurable live) live.reconfigure(configs);
    }
}
