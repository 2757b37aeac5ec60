package org.quotahost.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.types.Password;
import org.junit.jupiter.api.Test;

/** The part of the broker's properties that the Python host gets. */
class HostConfigTest {
    private final Map<String, Object> configs = new HashMap<>(Map.of(
            "client.quota.callback.class", "org.quotahost.PythonQuotaCallback",
            "client.quota.callback.static.produce", " 1M ",
            "client.quota.callback.kafka.sasl.password", new Password("hunter2"),
            "node.id", 3, "log.dirs", List.of("/a", "/b"), "ssl.key.password", "hunter2"));

    @Test
    void onlyItsOwnPropertiesAndAFewOfTheBrokersAreHandedOn() {
        HostConfig config = HostConfig.of(configs);

        assertEquals(Map.of("client.quota.callback.static.produce", "1M", "client.quota.callback.kafka.sasl.password", "hunter2"),
                config.properties());
        assertEquals(Map.of("node.id", "3", "log.dirs", "/a,/b", "inter.broker.principals", "ANONYMOUS"), config.broker());
    }

    @Test
    void aBucketOfMutationsSavesUpElevenSecondsUnlessTheControllersWindowIsSet() {
        assertEquals(11, HostConfig.of(configs).mutationSeconds());
        configs.putAll(Map.of("controller.quota.window.num", 100, "controller.quota.window.size.seconds", "2"));
        assertEquals(200, HostConfig.of(configs).mutationSeconds());
    }

    @Test
    void secretsAreNotPrinted() {
        assertFalse(HostConfig.of(configs).toString().contains("hunter2"));
    }

    @Test
    void rawAndParsedValuesAreTheSameConfiguration() {
        Map<String, Object> raw = new HashMap<>(configs);
        raw.put("client.quota.callback.kafka.sasl.password", "hunter2");
        raw.put("node.id", "3");
        raw.put("log.dirs", "/a,/b");

        assertEquals(HostConfig.of(configs), HostConfig.of(raw));
    }

    @Test
    void thePythonOfThePathIsTakenIfNoneIsNamed() {
        assertEquals("python3", HostConfig.of(configs).executable());
        configs.put("client.quota.callback.python.executable", "/opt/q/bin/python");
        assertEquals("/opt/q/bin/python", HostConfig.of(configs).executable());
    }
}
