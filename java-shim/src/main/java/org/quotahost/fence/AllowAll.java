package org.quotahost.fence;

import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.errors.SecurityDisabledException;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.authorizer.AuthorizerServerInfo;

/**
 * The inner authorizer of a cluster that had no authorizer (fence.authorizer=none).
 *
 * <p>It does what a broker without an authorizer does: everything is allowed, and every question about ACLs is
 * answered with SECURITY_DISABLED (Kafka's AclApis).
 */
final class AllowAll implements Authorizer {
    private static final SecurityDisabledException DISABLED =
            new SecurityDisabledException("No Authorizer is configured.");

    @Override
    public void configure(Map<String, ?> configs) {}

    @Override
    public Map<Endpoint, ? extends CompletionStage<Void>> start(AuthorizerServerInfo server) {
        Map<Endpoint, CompletableFuture<Void>> ready = new HashMap<>();
        for (Endpoint endpoint : server.endpoints()) ready.put(endpoint, CompletableFuture.completedFuture(null));
        return ready;
    }

    @Override
    public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
        return Collections.nCopies(actions.size(), AuthorizationResult.ALLOWED);
    }

    @Override
    public AuthorizationResult authorizeByResourceType(AuthorizableRequestContext context, AclOperation operation,
            ResourceType type) {
        return AuthorizationResult.ALLOWED;
    }

    @Override
    public List<? extends CompletionStage<AclCreateResult>> createAcls(AuthorizableRequestContext context,
            List<AclBinding> bindings) {
        return Collections.nCopies(bindings.size(), CompletableFuture.completedFuture(new AclCreateResult(DISABLED)));
    }

    @Override
    public List<? extends CompletionStage<AclDeleteResult>> deleteAcls(AuthorizableRequestContext context,
            List<AclBindingFilter> filters) {
        return Collections.nCopies(filters.size(), CompletableFuture.completedFuture(new AclDeleteResult(DISABLED)));
    }

    @Override
    public Iterable<AclBinding> acls(AclBindingFilter filter) {
        throw DISABLED;
    }

    @Override
    public void close() {}
}
