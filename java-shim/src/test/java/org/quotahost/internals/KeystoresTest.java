package org.quotahost.internals;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.crypto.spec.SecretKeySpec;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what Python gets of the keystores that Kafka reads. */
class KeystoresTest {
    private static final String PASSWORD = "changeit";
    private static final String SUBJECT = "CN=broker-1,OU=kafka,O=quotahost";
    private static final Map<String, Path> STORES = new HashMap<>();

    @TempDir
    private static Path folder;

    private final Map<String, String> ssl = new HashMap<>();

    @BeforeAll
    static void makeKeystores() throws Exception {
        InternalsFixture.find(Internals.SSL, Keystores.stores(new String[0]));
        for (String type : List.of("JKS", "PKCS12")) STORES.put(type, make(folder, type, SUBJECT));
    }

    /** Makes a keystore with a new key; its type is JKS or PKCS12. */
    private static Path make(Path folder, String type, String subject) throws Exception {
        Path file = folder.resolve("keystore." + type);
        List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
                "-genkeypair", "-alias", "broker", "-keyalg", "EC", "-dname", subject, "-storetype", type,
                "-keystore", file.toString(), "-storepass", PASSWORD, "-keypass", PASSWORD));
        Process keytool = new ProcessBuilder(command).redirectErrorStream(true).start();
        keytool.getOutputStream().close(); // keytool must never wait for an answer
        String output = new String(keytool.getInputStream().readAllBytes());
        if (keytool.waitFor() != 0) throw new IllegalStateException(output);
        if (type.equals("PKCS12")) addSecretKey(file);
        return file;
    }

    /** Adds a secret key as the first entry; Kafka ignores it. */
    private static void addSecretKey(Path file) throws Exception {
        var password = new KeyStore.PasswordProtection(PASSWORD.toCharArray());
        KeyStore made = KeyStore.getInstance(file.toFile(), PASSWORD.toCharArray()), store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        store.setEntry("secret", new KeyStore.SecretKeyEntry(new SecretKeySpec(new byte[16], "AES")), password);
        store.setEntry("broker", made.getEntry("broker", password), password);
        try (OutputStream out = Files.newOutputStream(file)) {
            store.store(out, PASSWORD.toCharArray());
        }
    }

    private void store(String kind, String type) {
        ssl.putAll(Map.of("ssl." + kind + ".location", STORES.get(type).toString(), "ssl." + kind + ".type", type,
                "ssl." + kind + ".password", PASSWORD));
    }

    private static String[] flat(Map<String, String> pairs) {
        List<String> flat = new ArrayList<>();
        pairs.forEach((name, value) -> flat.addAll(List.of(name, value)));
        return flat.toArray(String[]::new);
    }

    private Map<String, String> read() throws Exception {
        return Keystores.read(flat(ssl));
    }

    @ParameterizedTest
    @ValueSource(strings = {"JKS", "PKCS12"})
    void storesBecomePem(String type) throws Exception {
        store("keystore", type);
        store("truststore", type);
        ssl.put("ssl.key.password", PASSWORD);

        Map<String, String> found = read();

        assertTrue(found.get("ssl.ca.pem").startsWith("-----BEGIN CERTIFICATE-----\n"));
        assertEquals(found.get("ssl.ca.pem"), found.get("ssl.certificate.pem"));
        assertTrue(found.get("ssl.key.pem").startsWith("-----BEGIN PRIVATE KEY-----\n"));
        assertEquals(SUBJECT, found.get("principal"));
    }

    @Test
    void pemIsReadFromAFileAndFromThePropertiesThemselves() throws Exception {
        store("keystore", "PKCS12");
        Map<String, String> found = read();
        List<String> pem = List.of(found.get("ssl.key.pem"), found.get("ssl.certificate.pem"));
        ssl.clear();
        ssl.putAll(Map.of("ssl.keystore.type", "PEM", "ssl.keystore.key", pem.get(0), "ssl.keystore.certificate.chain",
                pem.get(1)));
        assertEquals(SUBJECT, read().get("principal"));

        ssl.keySet().removeAll(List.of("ssl.keystore.key", "ssl.keystore.certificate.chain"));
        Path file = Files.writeString(folder.resolve("broker.pem"), pem.get(0) + pem.get(1));
        ssl.put("ssl.keystore.location", file.toString());
        assertEquals(SUBJECT, read().get("principal"));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {"RULE:^CN=([^,]*),.*$/$1/U | BROKER-1", "RULE:^none$/x/,RULE:^CN=([^,]*),.*$/$1/U | BROKER-1",
        "RULE:^none$/x/ | " + SUBJECT})
    void theNameIsMadeByTheRulesOfTheListenerAndWhereNoneFitsItIsTheSubject(String rules, String name) throws Exception {
        store("keystore", "PKCS12");
        ssl.put("ssl.principal.mapping.rules", rules);

        assertEquals(name, read().get("principal"));
    }

    @Test
    void theErrorOfAKeystoreThatCannotBeReadHasNoPassword() {
        store("keystore", "PKCS12");
        ssl.put("ssl.keystore.password", "S3CR3T");

        Exception error = assertThrows(Exception.class, this::read);

        for (Throwable each = error; each != null; each = each.getCause()) {
            assertFalse(String.valueOf(each).contains("S3CR3T"));
        }
    }

    @Test
    void whereKafkasReaderIsMissingTheErrorSaysWhatIsWeaker() throws Exception {
        InternalsFixture.find(Internals.SSL, null);
        try {
            String problem = assertThrows(IOException.class, this::read).getMessage();
            assertTrue(problem.contains("credentials of plugins are not derived from keystores; name them in "), problem);
        } finally {
            InternalsFixture.find(Internals.SSL, Keystores.stores(new String[0]));
        }
    }
}
