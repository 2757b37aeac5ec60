package org.quotahost.shapes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.quotahost.MonitoredPythonQuotaCallback;
import org.quotahost.MonitoredQuotaFence;
import org.quotahost.PythonQuotaCallback;
import org.quotahost.QuotaFence;
import org.quotahost.util.LogCapture;

/** Whether this jar knows the interfaces by which Kafka uses it; tests/broker/host/test_shapes.py asks other versions. */
class KafkaShapesTest {
    /** A later Kafka's. */
    interface Later extends ClientQuotaCallback {
        default void quotaOfGroup(String group, int[] types) {}

        static void ofNobody() {}
    }

    /** A much later one's. */
    interface Demanding extends Later {
        void mustBeThere();
    }

    /** A Kafka's that has taken methods away, one of them as 5.0 will. */
    interface Fewer {
        void close();
    }

    private static final KnownShapes KNOWN = KnownShapes.read();

    private static Comparison callback(Class<?> kafkas) {
        return Comparison.of(KNOWN, "ClientQuotaCallback", kafkas, PythonQuotaCallback.class);
    }

    @ParameterizedTest
    @ValueSource(classes = {PythonQuotaCallback.class, MonitoredPythonQuotaCallback.class, QuotaFence.class,
        MonitoredQuotaFence.class})
    void thisKafkasInterfacesAreNoNews(Class<?> ours) {
        assertEquals("", LogCapture.during(() -> KafkaShapes.require(ours)));
    }

    @Test
    void everyInterfaceOfKafkasThatWeImplementIsKnown() {
        for (Class<?> ours : List.of(MonitoredPythonQuotaCallback.class, MonitoredQuotaFence.class)) {
            for (Class<?> type = ours; type != null; type = type.getSuperclass()) {
                for (Class<?> each : type.getInterfaces()) {
                    assertTrue(KNOWN.has(each.getSimpleName()) || !each.getName().startsWith("org.apache.kafka"), each.getName());
                }
            }
        }
    }

    @Test
    void aDefaultMethodThatIsNewIsNamedAndHarmless() {
        Comparison later = callback(Later.class);
        assertEquals(Set.of("void quotaOfGroup(String, int[])"), later.news());
        assertEquals(Set.of(), later.unserved());
        assertEquals("This Kafka's ClientQuotaCallback is none that quotahost knows (those of 4.0 to 4.4): it has also"
                + " void quotaOfGroup(String, int[]), for which Kafka's own default applies; look for a quotahost that was"
                + " made for this Kafka", later.sentence());
    }

    @Test
    void anAbstractMethodThatIsNewCannotBeServed() {
        Comparison demanding = callback(Demanding.class);
        assertEquals(Set.of("void mustBeThere()"), demanding.unserved());
        assertTrue(demanding.sentence().contains("it demands void mustBeThere(), which quotahost cannot answer"));
    }

    @Test
    void whatIsGoneIsNamedUnlessNothingDependsOnIt() {
        Comparison fewer = callback(Fewer.class);
        assertTrue(fewer.gone().contains("boolean quotaResetRequired(ClientQuotaType)"));
        assertFalse(fewer.gone().stream().anyMatch(each -> each.contains("updateClusterMetadata")), "5.0 will not have it");
    }

    @Test
    void aQuotaTypeThatIsNewIsNamed() {
        KnownShapes fewer = new KnownShapes(List.of("ClientQuotaType\tconstant\tPRODUCE\t4.0"));
        Comparison types = KafkaShapes.compare(fewer, Object.class).get(0);
        assertEquals(Set.of("FETCH", "REQUEST", "CONTROLLER_MUTATION"), types.news());
        assertTrue(types.sentence().contains("which quotahost leaves unlimited"), types.sentence());
    }

    @Test
    void aMethodThatBecomesADefaultOneIsThere() {
        assertEquals("abstract", Shape.of(ClientQuotaCallback.class).get("boolean updateClusterMetadata(Cluster)"));
        assertEquals("default", Shape.of(Later.class).get("void quotaOfGroup(String, int[])"));
    }

    @Test
    void aJarWithoutTheResourceComparesNothing() {
        assertEquals(List.of(), KafkaShapes.compare(new KnownShapes(List.of("# nothing")), PythonQuotaCallback.class));
        assertEquals(Map.of("PRODUCE", "constant").keySet(), new KnownShapes(
                List.of("ClientQuotaType\tconstant\tPRODUCE\t4.0")).everSeen("ClientQuotaType"));
    }
}
