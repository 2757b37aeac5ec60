package org.quotahost;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.server.quota.ClientQuotaType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The callback without a host: before configure(), after a failed configure(), after close(). */
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
        Set<Thread> before = Thread.getAllStackTraces().keySet(); // children of other tests may still be ending
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
}
