package org.quotahost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.tools.ToolProvider;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.slf4j.Logger;

/** The callback without a host: before configure(), after a failed one, after close(); and in a Kafka with one more quota type. */
class PythonQuotaCallbackTest {
    private static final KafkaPrincipal ALICE = new KafkaPrincipal(KafkaPrincipal.USER_TYPE, "alice");
    private static final Map<String, String> NEWCOMERS = Map.of("user", "<newcomers>", "client-id", "");

    private final PythonQuotaCallback callback = new PythonQuotaCallback();

    @ParameterizedTest
    @EnumSource(ClientQuotaType.class)
    void itAnswersEveryQuestionOfARequest(ClientQuotaType type) {
        for (String clientId : new String[] {"app", "", null, "a:b"}) {
            assertEquals(NEWCOMERS, callback.quotaMetricTags(type, ALICE, clientId));
        }
        assertNull(callback.quotaLimit(type, NEWCOMERS));
        assertFalse(callback.quotaResetRequired(type));
    }

    @ParameterizedTest
    @EnumSource(ClientQuotaType.class)
    void nonsenseIsAnsweredWithoutAnException(ClientQuotaType type) {
        assertEquals(NEWCOMERS, callback.quotaMetricTags(type, null, "app"));
        assertNull(callback.quotaLimit(type, null));
        assertNull(callback.quotaLimit(type, Map.of("other", "tag")));
        assertFalse(callback.quotaResetRequired(null));
    }

    @Test
    void eventsOfKafkaWithoutAHostDoNoHarm() {
        callback.updateQuota(ClientQuotaType.PRODUCE, List::of, 1_000);
        callback.removeQuota(ClientQuotaType.PRODUCE, List::of);
        callback.reconfigure(Map.of("client.quota.callback.mode", "shadow"));
        callback.validateReconfiguration(Map.of());

        assertFalse(callback.updateClusterMetadata(Cluster.empty()));
        assertFalse(callback.updateClusterMetadata(null));
        assertTrue(callback.reconfigurableConfigs().isEmpty());
    }

    @Test
    void closingIsAllowedAtAnyTimeAndTwice() {
        callback.close();
        callback.close();

        itAnswersEveryQuestionOfARequest(ClientQuotaType.PRODUCE);
        eventsOfKafkaWithoutAHostDoNoHarm();
    }

    @Test
    void aFailedStartIsOneConfigExceptionNamingThePropertyEachTime() {
        Set<Thread> before = Thread.getAllStackTraces().keySet(); // other tests' children may still be on their way out
        Map<String, String> configs = Map.of("client.quota.callback.python.executable", "/no/such/python");
        for (int start = 0; start < 2; start++) {
            String message = assertThrows(ConfigException.class, () -> callback.configure(configs)).getMessage();
            assertTrue(message.startsWith("client.quota.callback.python.executable=/no/such/python"), message);
        }

        itAnswersEveryQuestionOfARequest(ClientQuotaType.FETCH);
        callback.close();
        assertEquals(List.of(), Thread.getAllStackTraces().keySet().stream().filter(thread -> !before.contains(thread))
                .map(Thread::getName).filter(name -> name.startsWith("quotahost-")).toList());
    }

    // ---- a ClientQuotaType of our own before Kafka's on the class path ----

    private static final String TYPE = "org.apache.kafka.server.quota.ClientQuotaType";
    private static final String FIVE = "package org.apache.kafka.server.quota;"
            + "public enum ClientQuotaType { PRODUCE, FETCH, REQUEST, CONTROLLER_MUTATION, LATER }";

    @TempDir
    Path classes;

    @Test
    void aQuotaTypeThatOnlyALaterKafkaKnowsIsPassedThroughUnlimited() throws Exception {
        try (URLClassLoader later = laterKafka()) {
            Object[] types = later.loadClass(TYPE).getEnumConstants();
            Object callback = later.loadClass(PythonQuotaCallback.class.getName()).getConstructor().newInstance();
            Object alice = later.loadClass("org.apache.kafka.common.security.auth.KafkaPrincipal")
                    .getConstructor(String.class, String.class).newInstance("User", "alice");
            publish(callback, later);

            assertEquals(1_000.0, limit(callback, types[0], alice));
            assertNull(limit(callback, types[4], alice));
            assertEquals("<unlimited>", ((Map<?, ?>) call(callback, "quotaMetricTags", types[4], alice, "app")).get("user"));
            assertEquals(false, call(callback, "quotaResetRequired", types[4]));
        }
    }

    private static Object limit(Object callback, Object type, Object principal) throws Exception {
        return call(callback, "quotaLimit", type, call(callback, "quotaMetricTags", type, principal, "app"));
    }

    /** Publishes a quota of 1,000 for alice/app, by the four types that the Python host knows. */
    private static void publish(Object callback, ClassLoader loader) throws Exception {
        Field field = callback.getClass().getDeclaredField("table");
        field.setAccessible(true);
        Object table = field.get(callback);
        double[] rates = {1_000, 1_000, 1_000, 1_000};
        call(table, "configure", 100, 3_600L, 10.0, new String[] {"PRODUCE"}, rates, new String[0]);
        Object batch = make(loader, "inbox.Inbox$Batch", List.of(make(loader, "inbox.Inbox$Batch$Lookup", "alice", "app", 1L)), List.of());
        Object quota = make(loader, "table.Answer$Quota", 0, 1_000.0, "", "static");
        Object quotas = Array.newInstance(quota.getClass(), 4);
        for (int type = 0; type < 4; type++) Array.set(quotas, type, quota);
        Object each = loader.loadClass("org.quotahost.table.Answer$Reach").getEnumConstants()[1];
        call(table, "publish", batch, new int[1], List.of(make(loader, "table.Answer", quotas, each, Set.of(), "")));
    }

    private static Object make(ClassLoader loader, String name, Object... arguments) throws Exception {
        return loader.loadClass("org.quotahost." + name).getConstructors()[0].newInstance(arguments);
    }

    private static Object call(Object target, String name, Object... arguments) throws Exception {
        Method method = Arrays.stream(target.getClass().getMethods())
                .filter(m -> m.getName().equals(name) && m.getParameterCount() == arguments.length).findFirst().orElseThrow();
        return method.invoke(target, arguments);
    }

    private URLClassLoader laterKafka() throws IOException {
        Path source = classes.resolve("ClientQuotaType.java");
        Files.writeString(source, FIVE);
        ToolProvider.getSystemJavaCompiler().run(null, null, null, "-d", classes.toString(), source.toString());
        URL[] path = {classes.toUri().toURL(), home(PythonQuotaCallback.class), home(ClientQuotaCallback.class), home(Logger.class)};
        return new URLClassLoader(path, ClassLoader.getPlatformClassLoader());
    }

    private static URL home(Class<?> type) throws MalformedURLException {
        return type.getProtectionDomain().getCodeSource().getLocation();
    }
}
