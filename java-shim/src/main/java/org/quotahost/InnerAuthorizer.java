package org.quotahost;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.SecurityDisabledException;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.authorizer.AuthorizerServerInfo;
import org.quotahost.internals.Internals;
import org.quotahost.util.BrokerConfigs;

/**
 * Makes the authorizer behind the fence, which client.quota.callback.fence.authorizer names: "none", or a class.
 *
 * <p>Without the property it is Kafka's StandardAuthorizer, which denies what no ACL allows: an operator who forgets
 * the property opens no cluster.
 */
final class InnerAuthorizer {
    static final String PROPERTY = BrokerConfigs.PREFIX + "fence.authorizer";
    private static final String NONE = "none";
    private static final String REMEDY = "; leave the property out for Kafka's StandardAuthorizer, or give \"" + NONE
            + "\" if the cluster had no authorizer, or the class that was in authorizer.class.name before";

    private InnerAuthorizer() {}

    /** The authorizer, which the caller has to configure; ConfigException if the class is not there or is none. */
    static Authorizer of(Map<String, ?> configs) {
        String name = Objects.toString(configs.get(PROPERTY), "").strip();
        if (name.equalsIgnoreCase(NONE)) return new AllowAll();
        if (!name.isEmpty()) return load(name);
        Supplier<Authorizer> standard = Internals.AUTHORIZER.get();
        if (standard == null) throw wrong(name, "stands for Kafka's StandardAuthorizer, which this Kafka has not");
        return standard.get();
    }

    private static Authorizer load(String name) {
        ClassLoader context = Thread.currentThread().getContextClassLoader();
        try {
            Class<?> found = context != null ? Class.forName(name, true, context) : Class.forName(name);
            if (QuotaFence.class.isAssignableFrom(found)) throw wrong(name, "is the fence itself");
            if (!Authorizer.class.isAssignableFrom(found)) throw wrong(name, "is no " + Authorizer.class.getName());
            return (Authorizer) found.getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException | LinkageError e) {
            throw wrong(name, "can't be loaded (" + (e.getCause() == null ? e : e.getCause()) + ")");
        }
    }

    private static ConfigException wrong(String name, String what) {
        return new ConfigException(PROPERTY + "=" + name + " " + what + REMEDY);
    }

    /** As a broker without an authorizer: all is allowed, and questions about ACLs get SECURITY_DISABLED (AclApis). */
    private static final class AllowAll implements Authorizer {
        private static final SecurityDisabledException DISABLED =
                new SecurityDisabledException("No Authorizer is configured.");

        @Override
        public void configure(Map<String, ?> configs) {}

        @Override
        public Map<Endpoint, ? extends CompletionStage<Void>> start(AuthorizerServerInfo server) {
            return server.endpoints().stream()
                    .collect(Collectors.toMap(each -> each, each -> CompletableFuture.<Void>completedFuture(null)));
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
}
