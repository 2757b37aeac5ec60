package org.quotahost;

import java.io.IOException;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.Reconfigurable;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.NotControllerException;
import org.apache.kafka.common.errors.SecurityDisabledException;
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
import org.quotahost.fence.Exemptions;
import org.quotahost.fence.Fence;
import org.quotahost.internals.Internals;
import org.quotahost.util.BrokerConfigs;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The authorizer that Kafka loads by authorizer.class.name: it asks the inner authorizer (fence.authorizer), then the fence,
 * and throws the fence's error if the fence turns the request back.
 *
 * <p>While the state is PAUSE, the fence turns back the produce requests of all but exempt clients and super users, before anything
 * is appended. Quotas cannot do that, since Kafka throttles after the append. But if authorize() throws, KafkaApis answers the
 * request with that error. Topic quotas (TopicQuotas) turn back requests to single topics in the same way.
 *
 * <p>The inner authorizer is asked first, so that a client that lacks a right is told so. If fence.authorizer is not set, the
 * inner authorizer is Kafka's StandardAuthorizer, which denies what no ACL allows: an operator who forgets the property does
 * not open the cluster. With fence.authorizer=none everything is allowed.
 *
 * <p>A producer with acks=0 expects no answer. Kafka closes its connection instead (RequestHandlerHelper), and the records that
 * it sent are lost, as with any other error.
 *
 * <p>All other calls of Kafka go to the inner authorizer. Kafka gives the ACLs of its metadata log only to a
 * ClusterMetadataAuthorizer, so this class is one. If the inner authorizer is not a ClusterMetadataAuthorizer, it keeps its
 * ACLs itself, and Kafka's ACLs are dropped.
 */
public class QuotaFence implements ClusterMetadataAuthorizer, Reconfigurable {
    static final String PROPERTY = BrokerConfigs.PREFIX + "fence.authorizer";
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.fence");
    private static final String NONE = "none", STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer";
    private static final String REMEDY = "; leave the property out for Kafka's StandardAuthorizer, or give \"" + NONE
            + "\" if the cluster had no authorizer, or the class that was in authorizer.class.name before";

    Authorizer inner;

    @Override
    public void configure(Map<String, ?> configs) {
        Internals.start(getClass());
        inner = innerOf(configs);
        inner.configure(configs);
        giveMetrics();
        String roles = Objects.toString(configs.get("process.roles"), "");
        Exemptions.superUsers(configs);
        Fence.install(roles.contains("broker"), roles.contains("controller"));
        LOG.info("{} asks the inner authorizer {} (property {}; \"none\" is for clusters that had no authorizer)",
                getClass().getSimpleName(), inner.getClass().getName(), PROPERTY);
    }

    @Override
    public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
        List<AuthorizationResult> results = inner.authorize(context, actions);
        RuntimeException error = Fence.error(context, actions, results);
        if (error == null) error = Fence.creationError(context, actions, results);
        if (error != null) throw error;
        return results;
    }

    /** Checks for null, since Kafka may close an authorizer that it could not configure. */
    @Override
    public void close() throws IOException {
        if (inner != null) inner.close();
    }

    /** From Kafka 4.1 on StandardAuthorizer does not work without metrics, and Kafka gives metrics only to a Monitorable. */
    void giveMetrics() {
        Consumer<Authorizer> giver = Internals.AUTHORIZER_METRICS.get();
        if (giver != null) giver.accept(inner);
    }

    // ---- the inner authorizer --------------------------------------------------------------------------------

    /** Throws ConfigException if the class is missing, is not an Authorizer, or is the fence itself. */
    private static Authorizer innerOf(Map<String, ?> configs) {
        String name = Objects.toString(configs.get(PROPERTY), "").strip();
        return name.equalsIgnoreCase(NONE) ? new AllowAll() : load(name.isEmpty() ? STANDARD : name);
    }

    private static Authorizer load(String name) {
        try {
            Class<?> type = Class.forName(name);
            if (QuotaFence.class.isAssignableFrom(type)) throw wrong(name, "is the fence itself");
            if (!Authorizer.class.isAssignableFrom(type)) throw wrong(name, "is not an " + Authorizer.class.getName());
            return (Authorizer) type.getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException | LinkageError e) {
            throw wrong(name, "can't be loaded (" + (e.getCause() == null ? e : e.getCause()) + ")");
        }
    }

    private static ConfigException wrong(String name, String what) {
        return new ConfigException(PROPERTY + "=" + name + " " + what + REMEDY);
    }

    // ---- calls that the inner authorizer answers ----------------------------------------------------------------

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
        if (inner instanceof ClusterMetadataAuthorizer acls) acls.setAclMutator(mutator);
    }

    @Override
    public AclMutator aclMutatorOrException() {
        if (inner instanceof ClusterMetadataAuthorizer acls) return acls.aclMutatorOrException();
        throw new NotControllerException(inner.getClass().getName() + " keeps its ACLs itself");
    }

    @Override
    public void completeInitialLoad() {
        if (inner instanceof ClusterMetadataAuthorizer acls) acls.completeInitialLoad();
    }

    @Override
    public void completeInitialLoad(Exception e) {
        if (inner instanceof ClusterMetadataAuthorizer acls) acls.completeInitialLoad(e);
    }

    @Override
    public void loadSnapshot(Map<Uuid, StandardAcl> all) {
        if (inner instanceof ClusterMetadataAuthorizer acls) acls.loadSnapshot(all);
    }

    @Override
    public void addAcl(Uuid id, StandardAcl acl) {
        if (inner instanceof ClusterMetadataAuthorizer acls) acls.addAcl(id, acl);
    }

    @Override
    public void removeAcl(Uuid id) {
        if (inner instanceof ClusterMetadataAuthorizer acls) acls.removeAcl(id);
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

    /** Behaves like a broker without an authorizer: all is allowed, and requests about ACLs get SECURITY_DISABLED (AclApis). */
    private static final class AllowAll implements Authorizer {
        private static final SecurityDisabledException DISABLED =
                new SecurityDisabledException("No Authorizer is configured.");

        @Override
        public void configure(Map<String, ?> configs) {}

        @Override
        public Map<Endpoint, ? extends CompletionStage<Void>> start(AuthorizerServerInfo server) {
            return server.endpoints().stream().collect(Collectors.toMap(Function.identity(),
                    endpoint -> CompletableFuture.<Void>completedFuture(null)));
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
