package org.quotahost.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A Java client's configuration, written as in a properties file, and what librdkafka gets of it. */
class LibrdkafkaConfigTest {
    @TempDir
    private static Path folder;

    private final Map<String, String> java = new HashMap<>(Map.of("bootstrap.servers", "a:1,b:2"));

    private Map<String, String> translated() throws Exception {
        return LibrdkafkaConfig.of(java);
    }

    @Test
    void anAddressAloneStaysAsItIs() throws Exception {
        assertEquals(Map.of("bootstrap.servers", "a:1,b:2"), translated());
    }

    @ParameterizedTest
    @ValueSource(strings = {"JKS", "PKCS12"})
    void keystoresBecomePem(String type) throws Exception {
        String store = Keystores.make(folder, type, "CN=client").toString();
        java.put("security.protocol", "SSL");
        for (String kind : new String[] {"keystore", "truststore"}) {
            java.put("ssl." + kind + ".location", store);
            java.put("ssl." + kind + ".type", type);
            java.put("ssl." + kind + ".password", Keystores.PASSWORD);
        }

        Map<String, String> made = translated();

        assertEquals("SSL", made.get("security.protocol"));
        assertTrue(made.get("ssl.ca.pem").startsWith("-----BEGIN CERTIFICATE-----\n"));
        assertEquals(made.get("ssl.ca.pem"), made.get("ssl.certificate.pem"));
        assertTrue(made.get("ssl.key.pem").startsWith("-----BEGIN PRIVATE KEY-----\n"));
        assertFalse(made.toString().contains(store), "librdkafka has no keystores");
    }

    @Test
    void jaasBecomesUserAndPassword() throws Exception {
        java.put("security.protocol", "SASL_PLAINTEXT");
        java.put("sasl.mechanism", "SCRAM-SHA-512");
        java.put("sasl.jaas.config", "a.b.ScramLoginModule required username=\"me\" password=\"it's\";");

        assertEquals(
                Map.of("bootstrap.servers", "a:1,b:2", "security.protocol", "SASL_PLAINTEXT", "sasl.mechanism",
                        "SCRAM-SHA-512", "sasl.username", "me", "sasl.password", "it's"),
                translated());
    }

    @Test
    void theErrorNamesAKeystoreThatCannotBeReadWithoutItsPassword() {
        java.put("security.protocol", "SSL");
        java.put("ssl.truststore.location", folder.resolve("absent").toString());
        java.put("ssl.truststore.password", "S3CR3T");

        Exception error = assertThrows(Exception.class, this::translated);

        for (Throwable each = error; each != null; each = each.getCause()) assertFalse(String.valueOf(each).contains("S3CR3T"));
    }
}
