package org.quotahost.util;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.config.types.Password;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests which of the broker's properties the Python host gets. */
class BrokerConfigsTest {
    private final Map<String, Object> configs = new HashMap<>(Map.of(
            "client.quota.callback.class", "org.quotahost.PythonQuotaCallback",
            "client.quota.callback.static.produce", " 1M ",
            "client.quota.callback.kafka.sasl.password", new Password("hunter2"),
            "node.id", 3, "log.dirs", List.of("/a", "/b"), "num.partitions", 7, "delegation.token.secret.key", "hunter2"));

    @Test
    void onlyItsOwnPropertiesAndAFewOfTheBrokersAreHandedOn() {
        BrokerConfigs config = BrokerConfigs.of(configs);

        assertEquals(Map.of("client.quota.callback.static.produce", "1M", "client.quota.callback.kafka.sasl.password", "hunter2"),
                config.properties());
        assertEquals(Map.of("node.id", "3", "log.dirs", "/a,/b"), config.broker());
    }

    @Test
    void logDirectoriesAreNamedAsKafkaNamesThem() {
        configs.put("log.dirs", "data, /b/");

        assertEquals(System.getProperty("user.dir") + "/data,/b", BrokerConfigs.of(configs).broker().get("log.dirs"));
    }

    @Test
    void howBrokersAndClientsConnectIsHandedOn() {
        Map<String, String> connection = Map.of("listeners", "A://:1", "advertised.listeners", "A://a:1",
                "listener.security.protocol.map", "A:SASL_SSL", "inter.broker.listener.name", "A",
                "controller.listener.names", "C", "security.inter.broker.protocol", "SSL", "ssl.key.password", "hunter2",
                "sasl.mechanism.inter.broker.protocol", "PLAIN", "listener.name.a.plain.sasl.jaas.config", "hunter2",
                "principal.builder.class", "org.acme.Builder");

        assertEquals(connection, BrokerConfigs.of(connection).broker());
    }

    /** If "listeners" is not set, Kafka has one, PLAINTEXT; if the brokers' listener has no name, it is named after a protocol. */
    @ParameterizedTest
    @CsvSource({"'',A,C", "'A://:1, c://:2',A,C", "'A://:1,b://:2',B,B C", "'PLAINTEXT://:1',,C", "'PLAINTEXT://:1,A://:2',,C PLAINTEXT"})
    void theListenersOfTheClustersOwnNodesAreThoseThatClientsNeedNot(String listeners, String brokers, String own) {
        configs.put("listeners", listeners);
        configs.put("inter.broker.listener.name", brokers);
        configs.put("controller.listener.names", "C");

        assertEquals(Set.of(own.split(" ")), BrokerConfigs.of(configs).ownListeners());
    }

    @Test
    void aValueThatIsEmptyIsHandedOnAndOneThatIsNotSetIsNot() {
        configs.clear();
        configs.put("ssl.endpoint.identification.algorithm", "");
        configs.put("ssl.keystore.location", null);

        assertEquals(Map.of("ssl.endpoint.identification.algorithm", ""), BrokerConfigs.of(configs).broker());
    }

    @Test
    void secretsAreNotPrinted() {
        configs.put("ssl.key.password", "hunter2");

        assertFalse(BrokerConfigs.of(configs).toString().contains("hunter2"));
    }

    @Test
    void rawAndParsedValuesAreTheSameConfiguration() {
        configs.put("sasl.oauthbearer.jwt.retriever.class", Password.class);
        Map<String, Object> raw = new HashMap<>(configs);
        raw.put("sasl.oauthbearer.jwt.retriever.class", Password.class.getName());
        raw.put("client.quota.callback.kafka.sasl.password", "hunter2");
        raw.put("node.id", "3");
        raw.put("log.dirs", "/a,/b");

        assertEquals(BrokerConfigs.of(configs), BrokerConfigs.of(raw));
    }
}
