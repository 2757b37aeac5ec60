package org.quotahost.fence;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionStage;
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

/**
 * An authorizer that hands everything that Kafka asks to another one, the inner authorizer.
 *
 * <p>Kafka gives the ACLs of its metadata log only to a ClusterMetadataAuthorizer, so this class is one. If the inner
 * authorizer is none, it keeps its ACLs itself, and Kafka's are dropped. QuotaFence puts the fence in front of it.
 */
public abstract class ForwardingAuthorizer implements ClusterMetadataAuthorizer, Reconfigurable {
    private Authorizer inner;
    /** The inner authorizer if it wants the ACLs of the metadata log, else null. */
    private ClusterMetadataAuthorizer acls;

    /** To be called once, before anything else. */
    protected final void forwardTo(Authorizer authorizer) {
        inner = authorizer;
        acls = authorizer instanceof ClusterMetadataAuthorizer known ? known : null;
    }

    protected final Authorizer inner() {
        return inner;
    }

    // ---- Authorizer ------------------------------------------------------------------------------------------

    @Override
    public Map<Endpoint, ? extends CompletionStage<Void>> start(AuthorizerServerInfo server) {
        return inner.start(server);
    }

    @Override
    public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
        return inner.authorize(context, actions);
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

    @Override
    public void close() throws IOException {
        if (inner != null) inner.close();
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
