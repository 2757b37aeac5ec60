package org.quotahost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.lifecycle.AfterTry;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.errors.AuthorizerNotReadyException;
import org.apache.kafka.common.errors.NotControllerException;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.ClusterMetadataAuthorizer;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.AuthorizerServerInfo;
import org.quotahost.fence.Fence;
import org.quotahost.fence.FenceFixture;

/** With the default inner authorizer, ACLs have the effect that they have with Kafka's own StandardAuthorizer. */
class QuotaFenceAclsTest {
    private static final String[] USERS = {"alice", "bob", "root"};
    private static final String[] NAMES = {"t", "topic", "other"};
    private static final ResourceType[] TYPES = {ResourceType.TOPIC, ResourceType.TRANSACTIONAL_ID, ResourceType.GROUP};
    private static final AclOperation[] OPERATIONS = {AclOperation.WRITE, AclOperation.READ, AclOperation.DESCRIBE};

    /** A fence, and Kafka's own StandardAuthorizer to compare it with: both get the same properties and ACLs. */
    private static final class AclOracle implements AutoCloseable {
        private final Metrics metrics = new Metrics();
        final StandardAuthorizer kafkas = new StandardAuthorizer();
        final QuotaFence fence;

        AclOracle(Map<String, String> properties) {
            fence = FenceFixture.fence("", properties);
            kafkas.configure(properties);
            Plugin.wrapInstance(kafkas, metrics, "authorizer.class.name", "role", "broker");
        }

        /** Loads ACLs as a broker gets them: the first half as a snapshot, the rest one by one; some are removed again. */
        void load(List<AclBinding> all, Collection<Integer> removed) {
            Map<Uuid, StandardAcl> snapshot = new HashMap<>();
            List<Uuid> ids = new ArrayList<>();
            for (int i = 0; i < all.size(); i++) ids.add(new Uuid(7, i + 1));
            int half = all.size() / 2;
            for (int i = 0; i < half; i++) snapshot.put(ids.get(i), StandardAcl.fromAclBinding(all.get(i)));
            for (ClusterMetadataAuthorizer each : List.of(kafkas, fence)) {
                each.loadSnapshot(snapshot);
                for (int i = half; i < all.size(); i++) each.addAcl(ids.get(i), StandardAcl.fromAclBinding(all.get(i)));
                removed.stream().filter(at -> at < all.size()).forEach(at -> each.removeAcl(ids.get(at)));
                each.completeInitialLoad();
            }
        }

        static List<AclBinding> acls(ClusterMetadataAuthorizer authorizer) {
            List<AclBinding> found = new ArrayList<>();
            authorizer.acls(AclBindingFilter.ANY).forEach(found::add);
            return found;
        }

        static AclBinding binding(String user, String topic) {
            return new AclBinding(new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL),
                    new AccessControlEntry("User:" + user, "*", AclOperation.WRITE, AclPermissionType.ALLOW));
        }

        @Override
        public void close() throws IOException {
            fence.close();
            kafkas.close();
            metrics.close();
        }
    }

    @AfterTry
    void reset() {
        FenceFixture.reset();
    }

    @Property(tries = 200)
    void everyAnswerIsKafkasOwn(@ForAll("bindings") List<AclBinding> acls, @ForAll("places") Set<Integer> removed,
            @ForAll boolean allowOthers, @ForAll boolean superUser) throws Exception {
        try (AclOracle oracle = new AclOracle(Map.of("allow.everyone.if.no.acl.found", String.valueOf(allowOthers),
                "super.users", superUser ? "User:root;User:CN=x,OU=y" : ""))) {
            oracle.load(acls, removed);
            assertSameAnswers(oracle);
            assertEquals(AclOracle.acls(oracle.kafkas), AclOracle.acls(oracle.fence));
            assertEquals(oracle.kafkas.aclCount(), oracle.fence.aclCount());
        }
    }

    @Property(tries = 100)
    void aClosedFenceTurnsBackExactlyTheProduceRequestsThatWouldWriteSomething(
            @ForAll("bindings") List<AclBinding> acls) throws Exception {
        try (AclOracle oracle = new AclOracle(Map.of())) {
            oracle.load(acls, List.of());
            Fence.state(true, true, false, null);
            for (String user : USERS) {
                var request = FenceFixture.from(ApiKeys.PRODUCE, user, "app");
                List<AuthorizationResult> kafkas = oracle.kafkas.authorize(request, FenceFixture.write(NAMES));
                if (kafkas.contains(AuthorizationResult.ALLOWED)) {
                    assertThrows(FenceFixture.PAUSED, () -> oracle.fence.authorize(request, FenceFixture.write(NAMES)));
                } else {
                    assertEquals(kafkas, oracle.fence.authorize(request, FenceFixture.write(NAMES)));
                }
            }
        }
    }

    private static void assertSameAnswers(AclOracle oracle) {
        for (String user : USERS) {
            var request = FenceFixture.from(ApiKeys.PRODUCE, user, "app");
            List<Action> actions = new ArrayList<>();
            for (ResourceType type : TYPES) {
                for (AclOperation operation : OPERATIONS) {
                    for (String name : NAMES) actions.add(FenceFixture.to(operation, type, name));
                    assertEquals(oracle.kafkas.authorizeByResourceType(request, operation, type),
                            oracle.fence.authorizeByResourceType(request, operation, type));
                }
            }
            assertEquals(oracle.kafkas.authorize(request, actions), oracle.fence.authorize(request, actions));
        }
    }

    @Example
    void untilTheAclsAreLoadedOnlySuperUsersAreAnswered() throws Exception {
        try (QuotaFence fence = FenceFixture.fence("", Map.of("super.users", "User:root"))) {
            assertEquals(List.of(AuthorizationResult.ALLOWED),
                    fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, "root", "x"), FenceFixture.write("t")));
            assertThrows(AuthorizerNotReadyException.class,
                    () -> fence.authorize(FenceFixture.from(ApiKeys.PRODUCE, "alice", "x"), FenceFixture.write("t")));
        }
    }

    @Example
    void aListenerWaitsForTheAcls() throws Exception {
        Endpoint endpoint = new Endpoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, "localhost", 9092);
        try (QuotaFence fence = FenceFixture.fence("", Map.of())) {
            var ready = fence.start(server(endpoint)).get(endpoint).toCompletableFuture();
            assertFalse(ready.isDone());
            fence.completeInitialLoad();
            assertTrue(ready.isDone());
        }
    }

    /** A broker with one listener, which does not start early. */
    private static AuthorizerServerInfo server(Endpoint endpoint) {
        return (AuthorizerServerInfo) Proxy.newProxyInstance(QuotaFenceAclsTest.class.getClassLoader(),
                new Class<?>[] {AuthorizerServerInfo.class},
                (proxy, method, arguments) -> method.getName().equals("endpoints") ? List.of(endpoint) : List.of());
    }

    @Example
    void aclsAreCreatedByTheActiveControllerOnly() throws Exception {
        try (QuotaFence fence = FenceFixture.fence("", Map.of())) {
            assertThrows(NotControllerException.class, fence::aclMutatorOrException);
            assertThrows(NotControllerException.class, () -> fence.createAcls(FenceFixture.from(ApiKeys.CREATE_ACLS, "root", "x"),
                    List.of(AclOracle.binding("alice", "t"))));
        }
    }

    @Provide
    Arbitrary<List<AclBinding>> bindings() {
        return Combinators.combine(Arbitraries.of(TYPES), Arbitraries.of("t", "topic", "*"),
                Arbitraries.of(PatternType.LITERAL, PatternType.PREFIXED), Arbitraries.of("alice", "bob", "*"),
                Arbitraries.of("*", "127.0.0.1", "10.0.0.1"),
                Arbitraries.of(AclOperation.ALL, AclOperation.WRITE, AclOperation.READ),
                Arbitraries.of(AclPermissionType.ALLOW, AclPermissionType.ALLOW, AclPermissionType.DENY))
                .as((type, name, pattern, user, host, operation, permission) -> new AclBinding(
                        new ResourcePattern(type, name, name.equals("*") ? PatternType.LITERAL : pattern),
                        new AccessControlEntry("User:" + user, host, operation, permission)))
                .list().uniqueElements().ofMaxSize(8);
    }

    @Provide
    Arbitrary<Set<Integer>> places() {
        return Arbitraries.integers().between(0, 7).set().ofMaxSize(3);
    }
}
