package org.quotahost.cluster;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.config.types.Password;
import org.junit.jupiter.api.Test;

/** How a client of this JVM reaches the brokers: by the node's own listener, or as a controller alone is told. */
class BrokerClientTest {
    private static final String ADMIN = "client.quota.callback.static.kafka.admin.";

    private final Map<String, Object> configs = new HashMap<>(Map.of(
            "process.roles", "controller", "listeners", "CONTROLLER://:9093", "controller.listener.names", "CONTROLLER",
            ADMIN + "sasl.jaas.config", new Password("hunter2")));

    @Test
    void aControllerAloneConnectsAsItIsTold() {
        configs.put(ADMIN + "bootstrap.servers", "a:9092,b:9092");

        assertEquals(Map.of("bootstrap.servers", "a:9092,b:9092", "sasl.jaas.config", "hunter2"),
                BrokerClient.of(configs));
    }

    @Test
    void withoutAnAddressItConnectsNowhere() {
        assertEquals(Map.of(), BrokerClient.of(configs));
    }

    @Test
    void aBrokerConnectsToItself() {
        configs.putAll(Map.of("process.roles", "broker,controller", "listeners", "PLAINTEXT://:9092",
                ADMIN + "bootstrap.servers", "a:9092"));

        assertEquals(Map.of("bootstrap.servers", "localhost:9092", "security.protocol", "PLAINTEXT"),
                BrokerClient.of(configs));
    }

    @Test
    void oneOfSeveralAddressesIsEnough() throws IOException {
        try (ServerSocket open = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            String address = "127.0.0.1:" + open.getLocalPort();
            assertDoesNotThrow(() -> ClusterAdmin.reach("127.0.0.1:1, " + address));
        }
        assertThrows(IOException.class, () -> ClusterAdmin.reach("127.0.0.1:1,127.0.0.1:2"));
    }
}
