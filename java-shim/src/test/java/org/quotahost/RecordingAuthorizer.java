package org.quotahost;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.authorizer.AuthorizerServerInfo;

/** An authorizer that notes which of its methods are called, and gives answers that a test recognizes. */
abstract class RecordingAuthorizer implements Authorizer {
    final List<String> notes = new ArrayList<>();
    final Map<Endpoint, CompletableFuture<Void>> ready = Map.of();
    final List<AuthorizationResult> results = List.of(AuthorizationResult.ALLOWED);
    final List<CompletableFuture<AclCreateResult>> creates = List.of(new CompletableFuture<>());
    final List<CompletableFuture<AclDeleteResult>> deletes = List.of(new CompletableFuture<>());
    final List<AclBinding> bindings = new ArrayList<>();
    Map<String, ?> configs;

    final void note(String what) {
        notes.add(what);
    }

    @Override
    public void configure(Map<String, ?> given) {
        note("configure");
        configs = given;
    }

    @Override
    public Map<Endpoint, ? extends CompletionStage<Void>> start(AuthorizerServerInfo server) {
        note("start");
        return ready;
    }

    @Override
    public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
        note("authorize");
        return results;
    }

    @Override
    public AuthorizationResult authorizeByResourceType(AuthorizableRequestContext context, AclOperation op, ResourceType type) {
        note("byType");
        return AuthorizationResult.DENIED;
    }

    @Override
    public List<? extends CompletionStage<AclCreateResult>> createAcls(AuthorizableRequestContext context, List<AclBinding> all) {
        note("create");
        return creates;
    }

    @Override
    public List<? extends CompletionStage<AclDeleteResult>> deleteAcls(AuthorizableRequestContext context,
            List<AclBindingFilter> filters) {
        note("delete");
        return deletes;
    }

    @Override
    public Iterable<AclBinding> acls(AclBindingFilter filter) {
        note("acls");
        return bindings;
    }

    @Override
    public int aclCount() {
        note("count");
        return 42;
    }

    @Override
    public void close() {
        note("close");
    }
}
