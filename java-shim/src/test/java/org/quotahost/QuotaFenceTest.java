package org.quotahost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.stream.Stream;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.Reconfigurable;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.NotControllerException;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.metadata.authorizer.ClusterMetadataAuthorizer;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.authorizer.AuthorizerServerInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.quotahost.fence.Fence;
import org.quotahost.fence.FenceFixture;

/** Tests which authorizer stands behind the fence for each value of client.quota.callback.fence.authorizer. */
@ExtendWith(FenceFixture.Reset.class)
class QuotaFenceTest {
    private static final AuthorizableRequestContext REQUEST = FenceFixture.from(ApiKeys.PRODUCE, "alice", "app");

    private List<AuthorizationResult> last;

    /** An authorizer that keeps its ACLs itself and only answers requests. It records the calls that it gets. */
    public static class Plain implements Authorizer, Reconfigurable {
        final List<String> notes = new ArrayList<>();
        final List<AuthorizationResult> results = List.of(AuthorizationResult.ALLOWED);

        @Override
        public void configure(Map<String, ?> given) {
            notes.add("configure " + given.get("plain.level"));
        }

        @Override
        public Map<Endpoint, ? extends CompletionStage<Void>> start(AuthorizerServerInfo server) {
            return Map.of();
        }

        @Override
        public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
            return results;
        }

        @Override
        public List<? extends CompletionStage<AclCreateResult>> createAcls(AuthorizableRequestContext context, List<AclBinding> all) {
            return List.of();
        }

        @Override
        public List<? extends CompletionStage<AclDeleteResult>> deleteAcls(AuthorizableRequestContext context,
                List<AclBindingFilter> filters) {
            notes.add("delete " + filters.size());
            return List.of();
        }

        @Override
        public Iterable<AclBinding> acls(AclBindingFilter filter) {
            return List.of();
        }

        @Override
        public void close() {
            notes.add("close");
        }

        @Override
        public Set<String> reconfigurableConfigs() {
            return Set.of("plain.level");
        }

        @Override
        public void validateReconfiguration(Map<String, ?> configs) {
            notes.add("validate");
        }

        @Override
        public void reconfigure(Map<String, ?> configs) {
            notes.add("reconfigure");
        }
    }

    /** An authorizer whose constructor the fence cannot call. */
    public static class Unmakeable extends Plain {
        public Unmakeable(String needed) {
            notes.add(needed);
        }
    }

    /** An authorizer whose constructor fails. */
    public static class Broken extends Plain {
        public Broken() {
            throw new IllegalStateException("no database");
        }
    }

    private static Plain plain(QuotaFence fence) {
        return assertInstanceOf(Plain.class, fence.inner);
    }

    static Stream<Method> whatKafkaAsksAndTellsIsHandedOnAndTheAnswerBack() {
        return Stream.of(ClusterMetadataAuthorizer.class, Reconfigurable.class).flatMap(each -> Stream.of(each.getMethods()))
                .filter(method -> !Set.of("configure", "authorize").contains(method.getName()));
    }

    private static Object any(Class<?> type) {
        return Stream.of(7, AuthorizationResult.DENIED, REQUEST, new ArrayList<>(), new HashMap<>(), new HashSet<>(), new Exception(),
                new Uuid(7, 7)).filter(each -> type == int.class ? each.equals(7) : type.isInstance(each)).findFirst().orElse(null);
    }

    /** Returns an authorizer that keeps Kafka's ACLs, gives this answer to all calls, and records its last call. */
    private static Authorizer answering(Object answer, List<Object> last) {
        return (Authorizer) Proxy.newProxyInstance(QuotaFenceTest.class.getClassLoader(),
                new Class<?>[] {ClusterMetadataAuthorizer.class, Reconfigurable.class}, (proxy, method, arguments) -> {
                    last.clear();
                    last.add(method.getName());
                    if (arguments != null) Collections.addAll(last, arguments);
                    return answer;
                });
    }

    @ParameterizedTest
    @MethodSource
    void whatKafkaAsksAndTellsIsHandedOnAndTheAnswerBack(Method method) throws Exception {
        List<Object> asked = new ArrayList<>(), wanted = new ArrayList<>(List.of(method.getName()));
        Object answer = any(method.getReturnType());
        QuotaFence fence = new QuotaFence();
        fence.inner = answering(answer, asked);
        Object[] arguments = Stream.of(method.getParameterTypes()).map(QuotaFenceTest::any).toArray();
        Collections.addAll(wanted, arguments);

        assertEquals(answer, method.invoke(fence, arguments));
        assertEquals(wanted, asked);
    }

    @Test
    void whoMayWriteNothingIsToldSoAlsoWhileTheFenceIsClosed() {
        QuotaFence fence = FenceFixture.fence("none", Map.of());
        Fence.state(true, true, false, null, 0);
        List<AuthorizationResult> denied = List.of(AuthorizationResult.DENIED, AuthorizationResult.DENIED);
        fence.inner = answering(denied, new ArrayList<>());
        assertSame(denied, fence.authorize(REQUEST, FenceFixture.write("a", "b")));
        fence.inner = answering(List.of(AuthorizationResult.DENIED, AuthorizationResult.ALLOWED), new ArrayList<>());
        assertThrows(FenceFixture.PAUSED, () -> fence.authorize(REQUEST, FenceFixture.write("a", "b")));
    }

    @Test
    void anotherAuthorizerGetsWhatKafkaAsksAndTellsTheFence() throws Exception {
        QuotaFence fence = FenceFixture.fence(Plain.class.getName(), Map.of("plain.level", "3"));
        Plain plain = plain(fence);

        assertSame(plain.results, fence.authorize(REQUEST, FenceFixture.write("t")));
        assertEquals(Set.of("plain.level"), fence.reconfigurableConfigs());
        fence.deleteAcls(REQUEST, List.of(AclBindingFilter.ANY));
        fence.validateReconfiguration(Map.of());
        fence.reconfigure(Map.of());
        fence.close();

        assertEquals(List.of("configure 3", "delete 1", "validate", "reconfigure", "close"), plain.notes);
    }

    @Test
    void anAuthorizerWithAclsOfItsOwnGetsNoneOfKafkas() {
        QuotaFence fence = FenceFixture.fence(Plain.class.getName(), Map.of());

        fence.setAclMutator(null);
        fence.loadSnapshot(Map.of());
        fence.addAcl(null, null);
        fence.removeAcl(null);
        fence.completeInitialLoad();
        fence.completeInitialLoad(new Exception());

        assertThrows(NotControllerException.class, fence::aclMutatorOrException);
        assertEquals(List.of("configure null"), plain(fence).notes);
    }

    @ParameterizedTest
    @ValueSource(strings = {"no.such.Authorizer", "java.lang.String", "org.quotahost.QuotaFence",
        "org.quotahost.MonitoredQuotaFence", "org.quotahost.QuotaFenceTest$Unmakeable", "org.quotahost.QuotaFenceTest$Broken"})
    void aClassThatCannotBeOneIsOneConfigExceptionWithPropertyValueAndRemedy(String name) {
        String message = assertThrows(ConfigException.class, () -> FenceFixture.fence(name, Map.of())).getMessage();

        assertTrue(message.startsWith("client.quota.callback.fence.authorizer=" + name + " "), message);
        assertTrue(message.contains("leave the property out") && message.contains("\"none\""), message);
        assertEquals(name.endsWith("Broken"), message.contains("no database"), "the reason of a failed constructor");
        assertFalse(Fence.installed());
    }

    @Test
    void theMonitoredFenceGivesKafkasMetricsToTheInnerAuthorizer() throws Exception {
        try (Metrics metrics = new Metrics()) {
            MonitoredQuotaFence fence = new MonitoredQuotaFence();
            fence.configure(Map.of("process.roles", "controller"));
            try (var plugin = Plugin.wrapInstance(fence, metrics, "authorizer.class.name", "role", "broker")) {
                plugin.get().completeInitialLoad();
                plugin.get().authorize(REQUEST, FenceFixture.write("t"));
                var denied = metrics.metrics().entrySet().stream()
                        .filter(each -> each.getKey().name().equals("authorization-denied-rate-per-minute")).toList();
                assertEquals(1, denied.size());
                assertTrue((double) denied.get(0).getValue().metricValue() > 0);
            }
        }
    }

    @Test
    void anOpenFenceAllocatesNothingBeyondWhatTheInnerAuthorizerDoes() {
        QuotaFence fence = FenceFixture.fence(Plain.class.getName(), Map.of());
        List<Action> actions = FenceFixture.write("t");

        assertEquals(0, FenceFixture.bytesPerCall(() -> last = fence.authorize(REQUEST, actions)));
    }
}
