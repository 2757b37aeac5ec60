package org.quotahost.internals;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.quota.ClientQuotaCallback;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.quotahost.MonitoredPythonQuotaCallback;
import org.quotahost.MonitoredQuotaFence;
import org.quotahost.PythonQuotaCallback;
import org.quotahost.QuotaFence;
import org.quotahost.util.LogCapture;

/** What happens where something is missing that is no public API: tests/broker/host/test_internals.py starts brokers. */
class InternalsTest {
    /** By name, whether it is missing for a JVM without this jar, and what the log says. */
    private static Map<String, Boolean> missing(String jar, String[] log) throws Exception {
        try (URLClassLoader loader = new URLClassLoader(classPath(jar), ClassLoader.getPlatformClassLoader())) {
            Class<?> internals = loader.loadClass(Internals.class.getName());
            Class<?> ours = loader.loadClass(QuotaFence.class.getName());
            Exception[] failed = new Exception[1];
            log[0] = LogCapture.during(() -> {
                try {
                    internals.getMethod("start", Class.class).invoke(null, ours);
                    internals.getMethod("start", Class.class).invoke(null, ours);
                } catch (ReflectiveOperationException e) {
                    failed[0] = e;
                }
            });
            if (failed[0] != null) throw failed[0];
            Map<String, Boolean> all = new TreeMap<>();
            for (Object each : (List<?>) internals.getMethod("all").invoke(null)) {
                all.put((String) each.getClass().getMethod("name").invoke(each),
                        (Boolean) each.getClass().getMethod("missing").invoke(each));
            }
            return all;
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
        String[] log = new String[1];
        assertTrue(missing(jar, log).get(name), log[0]);
        assertEquals(1, LogCapture.lines(log[0], name + " is missing, or not as quotahost knows it ("), log[0]);
    }

    // ---- Kafka's interfaces ----------------------------------------------------------------------------------

    /** A much later Kafka's. */
    interface Demanding extends ClientQuotaCallback {
        default void mayBeThere() {}

        void mustBeThere(String group, int[] types);
    }

    /** A class of ours as that Kafka sees it. */
    abstract static class Ours extends PythonQuotaCallback implements Demanding {}

    @ParameterizedTest
    @ValueSource(classes = {PythonQuotaCallback.class, MonitoredPythonQuotaCallback.class,
        QuotaFence.class, MonitoredQuotaFence.class})
    void weHaveAllThatThisKafkaDemands(Class<?> ours) {
        assertEquals(List.of(), Internals.unserved(ours));
    }

    @Test
    void aMethodThatKafkaDemandsAndWeHaveNotStopsTheStart() {
        String sentence = assertThrows(ConfigException.class,
                () -> Internals.start(Ours.class)).getMessage();
        assertTrue(sentence.startsWith("This Kafka demands void mustBeThere(String, int[]) of "), sentence);
        assertTrue(sentence.endsWith("look for a quotahost that was made for this Kafka"), sentence);
    }

    @ParameterizedTest
    @CsvSource({"4.0.0", "4.0.1", "4.3.1", "4.4.0", "4.4.7-SNAPSHOT", "''"})
    void aVersionThatWasTestedOrIsNotKnownIsNoNews(String version) {
        assertNull(Internals.untested(version, "4.0 4.1 4.2 4.3 4.4"));
        assertNull(Internals.untested(version, ""));
    }

    @ParameterizedTest
    @CsvSource({"3.9.2", "4.5.0", "4.10.0", "5.0.0", "8.0.0-ccs", "4.5-IV1", "trunk"})
    void aVersionThatWasNeverTestedIsOneLine(String version) {
        assertEquals("quotahost was never tested with Kafka " + version + ", only with 4.0 to 4.4",
                Internals.untested(version, "4.0 4.1 4.2 4.3 4.4"));
    }
}
