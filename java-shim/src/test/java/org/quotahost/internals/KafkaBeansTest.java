package org.quotahost.internals;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.LongConsumer;
import java.util.stream.Stream;
import org.apache.kafka.common.metrics.JmxReporter;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.quotahost.util.Beans;
import org.quotahost.util.LogCapture;

/** Tests what Kafka's MBeans show; a broker that keeps Kafka's measurements out of JMX logs this at its start. */
class KafkaBeansTest {
    /** Time goes on from test to test, since KafkaBeans looks for names only now and then. */
    private static long now = System.nanoTime();

    private static long later() {
        return now += TimeUnit.HOURS.toNanos(1);
    }

    @BeforeEach
    @AfterEach
    void forget() {
        List.of(Internals.CLIENT_METERS, Internals.OFFLINE_LOG_DIRS, Internals.REPLICAS, Internals.LOAD, Internals.CLIENT_SOFTWARE)
                .forEach(each -> InternalsFixture.find(each, true));
    }

    private static boolean missing(Object reporters) {
        Map<String, Object> configs = new HashMap<>();
        configs.put("metric.reporters", reporters);
        KafkaBeans.lookFor(configs);
        return Internals.CLIENT_METERS.missing();
    }

    @Test
    void withoutAJmxReporterItIsMissing() {
        String log = LogCapture.during(() -> {
            assertTrue(missing(List.of("com.example.Reporter")));
            Internals.log();
        });
        assertEquals(1, LogCapture.lines(log, "ClientMeters of this Kafka is missing or has changed"
                + " (metric.reporters=com.example.Reporter has no org.apache.kafka.common.metrics.JmxReporter), so the factor"), log);
    }

    @Test
    void kafkasDefaultAndAListThatHasItAreNoNewsAndNoReporterAtAllIs() {
        assertTrue(missing(""));
        InternalsFixture.find(Internals.CLIENT_METERS, true);
        assertFalse(missing(null));
        assertFalse(missing("com.example.Reporter,org.apache.kafka.common.metrics.JmxReporter"));
        assertFalse(missing(List.of("org.apache.kafka.common.metrics.JmxReporter")));
    }

    /** Kafka counts connections by version and network thread (KIP-511). */
    @Test
    void connectionsOfAllVersionsAndThreadsOfASoftwareAreAddedUp() throws Exception {
        String form = "kafka.server:type=socket-server-metrics,clientSoftwareName=sarama,clientSoftwareVersion=%s,"
                + "listener=PLAINTEXT,networkProcessor=%d";
        try (Beans kafka = new Beans()) {
            kafka.show(form.formatted("1.61", 1), Map.of("connections", 3));
            kafka.show(form.formatted("1.60", 2), Map.of("connections", 3));
            kafka.show(form.replace("PLAINTEXT", "OWN").formatted("1.60", 3), Map.of("connections", 5));
            assertEquals(6, KafkaBeans.connections("sarama", Set.of("OWN"), later()));
        }
    }

    /** The JVM's search for MBeans holds a lock that Kafka needs for each new sensor. */
    @Test
    void mBeansAreSearchedForAgainOnlyAfterAWhile() throws Exception {
        String form = "kafka.server:type=socket-server-metrics,clientSoftwareName=sarama,listener=A,networkProcessor=%d";
        try (Beans kafka = new Beans()) {
            kafka.show(form.formatted(1), Map.of("connections", 3));
            assertEquals(3, KafkaBeans.connections("sarama", Set.of(), later()));
            kafka.show(form.formatted(2), Map.of("connections", 3));
            assertEquals(3, KafkaBeans.connections("sarama", Set.of(), now));
            assertEquals(6, KafkaBeans.connections("sarama", Set.of(), later()));
        }
    }

    /** Kafka 4.2 and newer show the broker's own request handlers (KIP-1207), and a network thread shows its waits when it has begun. */
    @Test
    void theLoadIsThatOfTheBrokersHandlersIfKafkaShowsThemAndOfTheThreadsThatHaveBegun() throws Exception {
        String pool = "kafka.server:type=KafkaRequestHandlerPool,name=", idle = "RequestHandlerAvgIdlePercent";
        String thread = "kafka.server:type=socket-server-metrics,networkProcessor=1,listener=";
        try (Beans kafka = new Beans()) {
            kafka.show(pool + idle, Map.of("Count", 7L));
            kafka.show(thread + "A", Map.of("io-wait-time-ns-total", 5.0));
            kafka.show(thread + "B", Map.of());
            Object[] load = KafkaBeans.load(later());
            assertEquals(List.of(7L, Map.of("A", 5.0)), List.of(load[1], load[3]));
            kafka.show(pool + "Broker" + idle, Map.of("Count", 9L));
            assertEquals(9L, KafkaBeans.load(later())[1]);
        }
    }

    @Test
    void theControllerIsTheQuorumsLeaderAndNobodyWhileThereIsNone() throws Exception {
        Map<String, Double> raft = new HashMap<>(Map.of("current-leader", 3.0));
        try (Beans kafka = new Beans()) {
            kafka.show("kafka.server:type=raft-metrics", raft);
            assertEquals("3", KafkaBeans.activeController());
            raft.put("current-leader", -1.0);
            assertEquals("", KafkaBeans.activeController());
        }
    }

    /** The broker has just joined its cluster. */
    @Test
    void theFirstConnectionForALongTimeIsNoSoftwareThatLacks() throws Exception {
        String thread = "kafka.server:type=socket-server-metrics,listener=PLAINTEXT,networkProcessor=1";
        Map<String, Double> counts = new HashMap<>(Map.of("connection-count", 0.0));
        long later = later();
        try (Beans kafka = new Beans()) {
            kafka.show(thread, counts);
            assertEquals(0, KafkaBeans.connections("sarama", Set.of("OWN"), later));
            counts.put("connection-count", 1.0);
            kafka.show(thread + ",clientSoftwareName=sarama,clientSoftwareVersion=1.61", Map.of("connections", 1));
            assertEquals(1, KafkaBeans.connections("sarama", Set.of("OWN"), later()));
            assertFalse(Internals.CLIENT_SOFTWARE.missing());
        }
    }

    @Test
    void aDirectoryThatFailsIsSeen() throws Exception {
        String[] directories = {"/data/1", "/data/a:b"};
        String form = "kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory=";
        Map<String, Integer> gauge = new HashMap<>(Map.of("Value", 0));
        try (Beans kafka = new Beans()) {
            kafka.show(form + "\"/data/1\"", Map.of("Value", 0));
            kafka.show(form + "\"/data/a:b\"", gauge);
            assertEquals(List.of(), KafkaBeans.offlineLogDirs(directories, later()));
            gauge.put("Value", 1);
            assertEquals(List.of("/data/a:b"), KafkaBeans.offlineLogDirs(directories, later()));
            assertFalse(Internals.OFFLINE_LOG_DIRS.missing());
        }
        assertEquals(List.of("/data/a:b"), KafkaBeans.offlineLogDirs(directories, later()), "a stop removes the MBeans first");
    }

    /** Returns, by the name of what is missing: the MBeans that exist, and the question. */
    static Stream<Arguments> whatABrokerHas() {
        String thread = "kafka.server:type=socket-server-metrics,listener=PLAINTEXT,networkProcessor=1";
        return Stream.of(
                arguments(Internals.LOAD, thread, (LongConsumer) KafkaBeans::load),
                arguments(Internals.LOAD, "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent",
                        (LongConsumer) KafkaBeans::load),
                arguments(Internals.CLIENT_SOFTWARE, thread, (LongConsumer) now -> KafkaBeans.connections("sarama", Set.of("OWN"), now)),
                arguments(Internals.REPLICAS, "kafka.log:type=Log,name=Size,topic=t,partition=0", (LongConsumer) now ->
                        assertEquals(-1, KafkaBeans.replicas(new String[] {"t"}, new int[1], now)[0], "who leads isn't known")),
                arguments(Internals.OFFLINE_LOG_DIRS, thread, (LongConsumer) now ->
                        KafkaBeans.offlineLogDirs(new String[] {"/data/1"}, now)));
    }

    @ParameterizedTest
    @MethodSource("whatABrokerHas")
    void aCounterThatLacksIsNamed(Internals.Internal<?> use, String there, LongConsumer ask) throws Exception {
        try (Beans kafka = new Beans()) {
            kafka.show(there, Map.of("connection-count", 1.0, "io-wait-time-ns-total", 1.0, "Count", 1, "Value", 1));
            ask.accept(later());
            assertFalse(use.missing());
            ask.accept(later());
            assertTrue(use.missing());
        }
    }

    @Test
    void aReplicaWithItsSizeAndLeaderIsToldAndOneThatIsGoneIsNothingNew() throws Exception {
        try (Beans kafka = new Beans()) {
            for (int partition : List.of(0, 1)) {
                kafka.show("kafka.log:type=Log,name=Size,topic=t,partition=" + partition, Map.of("Value", 50));
                kafka.show("kafka.cluster:type=Partition,name=ReplicasCount,topic=t,partition=" + partition,
                        Map.of("Value", 3 * partition));
            }
            long[] told = KafkaBeans.replicas(new String[] {"t", "t", "t"}, new int[] {0, 1, 2}, later());
            assertEquals(List.of(100L, 101L, -1L), Arrays.stream(told).boxed().toList());
            assertFalse(Internals.REPLICAS.missing());
        }
    }
}
