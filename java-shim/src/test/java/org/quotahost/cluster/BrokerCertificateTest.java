package org.quotahost.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.types.Password;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.quotahost.util.LogCapture;

/** The principal of a broker that others know by its certificate. */
class BrokerCertificateTest {
    private static final String SUBJECT = "CN=broker-1,OU=kafka,O=quotahost";

    private static final Map<String, Path> STORES = new HashMap<>();

    @TempDir
    private static Path folder;

    private final Map<String, Object> configs =
            new HashMap<>(Map.of("security.inter.broker.protocol", "SSL", "ssl.client.auth", "required"));

    @BeforeAll
    static void makeKeystores() throws Exception {
        for (String type : List.of("JKS", "PKCS12")) STORES.put(type, Keystores.make(folder, type, SUBJECT));
    }

    private void store(String prefix, String type) {
        configs.put(prefix + "ssl.keystore.location", STORES.get(type).toString());
        configs.put(prefix + "ssl.keystore.type", type);
        configs.put(prefix + "ssl.keystore.password", new Password(Keystores.PASSWORD));
        configs.put(prefix + "ssl.key.password", Keystores.PASSWORD);
    }

    private List<String> names() {
        return BrokerPrincipal.names(configs);
    }

    @ParameterizedTest
    @ValueSource(strings = {"JKS", "PKCS12"})
    void itsSubjectIsItsName(String type) {
        store("", type);

        assertEquals(List.of(SUBJECT), names());
    }

    @Test
    void theListenersOwnKeystoreAndRulesComeFirst() {
        store("listener.name.internal.", "PKCS12");
        configs.put("ssl.keystore.location", "/no/such/file");
        configs.put("ssl.principal.mapping.rules", "DEFAULT");
        configs.put("listener.name.internal.ssl.principal.mapping.rules", "RULE:^CN=([^,]*),.*$/$1/U");
        configs.remove("security.inter.broker.protocol");
        configs.put("inter.broker.listener.name", "INTERNAL");
        configs.put("listener.security.protocol.map", "INTERNAL:SSL");

        assertEquals(List.of("BROKER-1"), names());
    }

    @Test
    void pemIsReadFromAFileAndFromThePropertiesThemselves() throws Exception {
        List<String> pem = Keystores.pem(STORES.get("PKCS12"));
        configs.put("ssl.keystore.type", "PEM");
        configs.put("ssl.keystore.key", new Password(pem.get(0)));
        configs.put("ssl.keystore.certificate.chain", pem.get(1));
        assertEquals(List.of(SUBJECT), names());

        configs.keySet().removeAll(List.of("ssl.keystore.key", "ssl.keystore.certificate.chain"));
        configs.put("ssl.keystore.location", Files.writeString(folder.resolve("broker.pem"), pem.get(0) + pem.get(1)).toString());
        assertEquals(List.of(SUBJECT), names());
    }

    /** By Kafka's default no client shows a certificate, so brokers are anonymous, too (SslTransportLayer). */
    @ParameterizedTest
    @ValueSource(strings = {"none", ""})
    void ifTheListenerWantsNoClientCertificateBrokersAreAnonymous(String clientAuth) {
        store("", "PKCS12");
        configs.put("ssl.client.auth", clientAuth);
        if (clientAuth.isEmpty()) configs.remove("ssl.client.auth");

        assertEquals(List.of("ANONYMOUS"), names());
    }

    @Test
    void aRequestedCertificateIsShown() {
        store("", "PKCS12");
        configs.put("ssl.client.auth", "requested");

        assertEquals(List.of(SUBJECT), names());
    }

    @Test
    void aTruststoreThatCannotBeReadIsOfNoConcern() {
        store("", "PKCS12");
        configs.put("ssl.truststore.location", "/no/such/file");
        configs.put("ssl.truststore.password", "hunter2");

        assertEquals(List.of(SUBJECT), names());
    }

    @Test
    void theLogNamesAKeystoreThatCannotBeReadWithoutItsPassword() {
        store("", "PKCS12");
        configs.put("ssl.keystore.password", new Password("hunter2"));

        String log = LogCapture.during(() -> assertEquals(List.of(), names()));

        assertTrue(log.contains("static.excluded.principal.name.list"), log);
        assertFalse(log.contains("hunter2"), log);
    }
}
