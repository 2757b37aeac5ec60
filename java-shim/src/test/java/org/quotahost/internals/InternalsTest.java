package org.quotahost.internals;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.lang.reflect.Method;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.quotahost.PythonQuotaCallback;
import org.quotahost.QuotaFence;
import org.quotahost.util.LogCapture;

/** Tests what happens if something without a public API is missing; tests/broker/host/test_internals.py starts brokers. */
class InternalsTest {
    /** Returns the log of a start in a JVM without this jar. */
    private static String startWithout(String jar) throws Exception {
        try (URLClassLoader loader = new URLClassLoader(classPath(jar), ClassLoader.getPlatformClassLoader())) {
            Method start = loader.loadClass(Internals.class.getName()).getMethod("start", Class.class);
            Class<?> ours = loader.loadClass(QuotaFence.class.getName());
            return LogCapture.during(() -> {
                for (int callback = 0; callback < 2; callback++) assertDoesNotThrow(() -> start.invoke(null, ours));
            });
        }
    }

    private static URL[] classPath(String without) throws MalformedURLException {
        List<URL> path = new ArrayList<>();
        for (String each : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!new File(each).getName().startsWith(without)) path.add(new File(each).toURI().toURL());
        }
        return path.toArray(new URL[0]);
    }

    @ParameterizedTest
    @CsvSource({"log4j-core, BrokerLog", "metrics-core, Meters", "kafka-server-common, Meters"})
    void whereAJarIsMissingTheStartGoesOn(String jar, String name) throws Exception {
        String log = startWithout(jar);
        assertEquals(1, LogCapture.lines(log, name + " of this Kafka is missing or has changed ("), log);
    }

    // ---- who asks to validate new properties ------------------------------------------------------------------

    @Test
    void anAdministratorsRequestIsToldFromKafkaThatAppliesWhatIsStoredByTheThread() throws Exception {
        InternalsFixture.handles(new ProduceRequest(new ProduceRequestData(), ApiKeys.PRODUCE.latestVersion()));
        assertTrue(Requests.isHandled());
        assertFalse(CompletableFuture.supplyAsync(Requests::isHandled).get());
        InternalsFixture.handles(null);
        assertFalse(Requests.isHandled(), "a Kafka that tells nothing");
    }

    // ---- Kafka's interfaces ----------------------------------------------------------------------------------

    /** The interface of a much later Kafka. */
    interface Demanding extends ClientQuotaCallback {
        default void mayBeThere() {}

        void mustBeThere(String group, int[] types);
    }

    /** A class of ours as that Kafka would see it. */
    abstract static class Ours extends PythonQuotaCallback implements Demanding {}

    @Test
    void aMethodThatKafkaDemandsAndWeHaveNotStopsTheStart() {
        String sentence = assertThrows(ConfigException.class,
                () -> Internals.start(Ours.class)).getMessage();
        assertTrue(sentence.startsWith("This Kafka requires void mustBeThere(String, int[]) of "), sentence);
        assertTrue(sentence.endsWith("install a quotahost release for this Kafka version"), sentence);
    }

    @ParameterizedTest
    @CsvSource({"4.0.0,", "4.3.1,", "4.4.7-SNAPSHOT,", "'',", "3.9.2, never", "4.5.0, never", "4.10.0, never", "8.0.0-ccs, never",
        "trunk, never"})
    void aVersionThatWasNeverTestedIsOneLineAndOthersAreNoNews(String version, String never) {
        assertEquals(never == null ? null : "quotahost was never tested with Kafka " + version + ", only with 4.0 to 4.4",
                Internals.untested(version, "4.0 4.1 4.2 4.3 4.4"));
        assertNull(Internals.untested(version, ""));
    }

    /** A broker removes its MBeans while it stops, some seconds before it closes its callback. */
    @Test
    void whatLacksForTwoMinutesWithoutABreakIsMissing() {
        Internals.Internal<Boolean> use = new Internals.Internal<>("Use", "nothing follows", () -> true);
        for (int seconds : new int[] {0, 120, 240}) {
            use.lacks("a meter", TimeUnit.SECONDS.toNanos(seconds));
            if (seconds == 120) use.lacks(null, TimeUnit.SECONDS.toNanos(seconds));
        }
        assertFalse(use.missing());
        use.lacks("a meter", TimeUnit.SECONDS.toNanos(361));
        assertTrue(use.missing());
    }

    @Test
    void aFullHeapOrStackIsNoWordOnThisKafka() {
        Internals.Internal<Boolean> use = new Internals.Internal<>("Use", "nothing follows", () -> true);
        use.failed(new OutOfMemoryError());
        use.failed(new StackOverflowError());
        assertFalse(use.missing());
        use.failed(new NoSuchMethodError("sizeInBytes"));
        assertTrue(use.missing());
    }
}
