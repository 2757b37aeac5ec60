package org.quotahost.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.types.Password;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The principal of a broker by each way of authentication. */
class BrokerPrincipalTest {
    private static final String PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required ";

    private static List<String> names(Object... pairs) {
        Map<String, Object> configs = new HashMap<>();
        for (int i = 0; i < pairs.length; i += 2) configs.put((String) pairs[i], pairs[i + 1]);
        return BrokerPrincipal.names(configs);
    }

    @Test
    void withoutAuthenticationBrokersAreAnonymous() {
        assertEquals(List.of("ANONYMOUS"), names());
        assertEquals(List.of("ANONYMOUS"), names("controller.listener.names", "CONTROLLER",
                "listener.security.protocol.map", "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"));
    }

    @Test
    void aSaslUserIsReadFromTheListenersJaasConfig() {
        for (Object jaas : List.of(PLAIN + "username=\"br\\\"oker\" password=\"p\";", new Password(PLAIN + "password=\"p\" username=\"br\\\"oker\";"))) {
            assertEquals(List.of("br\"oker"), names("inter.broker.listener.name", "INTERNAL",
                    "listener.security.protocol.map", "INTERNAL:SASL_SSL", "sasl.mechanism.inter.broker.protocol", "PLAIN",
                    "listener.name.internal.plain.sasl.jaas.config", jaas));
        }
    }

    @Test
    void aKerberosPrincipalIsShortened() {
        assertEquals(List.of("kafka"), names("security.inter.broker.protocol", "SASL_PLAINTEXT",
                "sasl.jaas.config", "Krb5LoginModule required principal=\"kafka/host.example@REALM\" useKeyTab=true;"));
    }

    @Test
    void aCertificateGivesItsMappedSubject(@TempDir Path folder) throws Exception {
        Path store = folder.resolve("k.p12");
        Process keytool = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "keytool").toString(), "-genkeypair",
                "-alias", "k", "-keyalg", "EC", "-dname", "CN=broker-1, OU=kafka, O=quotahost", "-storetype", "PKCS12",
                "-keystore", store.toString(), "-storepass", "secret").inheritIO().start();
        assertEquals(0, keytool.waitFor());
        Object[] ssl = {"security.inter.broker.protocol", "SSL", "ssl.client.auth", "required", "ssl.keystore.location", store.toString(),
            "ssl.keystore.password", new Password("secret"), "ssl.key.password", "secret", "ssl.keystore.type", "PKCS12"};
        assertEquals(List.of("CN=broker-1,OU=kafka,O=quotahost"), names(ssl));
        Object[] mapped = java.util.Arrays.copyOf(ssl, ssl.length + 2);
        mapped[ssl.length] = "ssl.principal.mapping.rules";
        mapped[ssl.length + 1] = "RULE:^CN=(.*?),.*$/$1/,DEFAULT";
        assertEquals(List.of("broker-1"), names(mapped));
    }

    @Test
    void aPrincipalThatCannotBeFoundIsLeftOut() {
        assertEquals(List.of(), names("security.inter.broker.protocol", "SSL", "ssl.client.auth", "required",
                "ssl.keystore.location", "/no/such"));
        assertEquals(List.of(), names("security.inter.broker.protocol", "SASL_PLAINTEXT"));
    }
}
