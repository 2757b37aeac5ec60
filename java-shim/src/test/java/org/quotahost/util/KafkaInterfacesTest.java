package org.quotahost.util;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Set;
import org.apache.kafka.metadata.authorizer.ClusterMetadataAuthorizer;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Whether this jar knows all methods of the interfaces by which Kafka uses it. */
class KafkaInterfacesTest {
    /** A later Kafka's. */
    interface Later extends ClientQuotaCallback {
        default void quotaOfGroup(String group, int[] types) {}

        void mustBeThere();

        static void ofNobody() {}
    }

    /** A Kafka's that has taken a method away. */
    interface Fewer {
        void close();
    }

    @ParameterizedTest
    @ValueSource(classes = {ClientQuotaCallback.class, ClusterMetadataAuthorizer.class})
    void kafkasInterfacesAreAsTheyWere(Class<?> kafkas) {
        assertEquals(KafkaInterfaces.KNOWN.get(kafkas.getSimpleName()), KafkaInterfaces.methods(kafkas),
                "this Kafka's interface differs: implement or forward what is new, then change KafkaInterfaces.KNOWN");
    }

    @Test
    void aMethodThatIsNewIsNamed() {
        Set<String> known = KafkaInterfaces.KNOWN.get("ClientQuotaCallback");
        assertEquals(List.of("mustBeThere()", "quotaOfGroup(String, int[])"), KafkaInterfaces.unknown(Later.class, known));
        assertEquals(List.of(), KafkaInterfaces.unknown(Fewer.class, known));
    }

    @Test
    void thisKafkasInterfacesAreNoNews() {
        String log = LogCapture.during(() -> {
            KafkaInterfaces.compare(ClientQuotaCallback.class);
            KafkaInterfaces.compare(ClusterMetadataAuthorizer.class);
        });
        assertEquals("", log);
    }
}
