package org.quotahost.cluster;

import java.security.Key;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.util.Base64;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.SslConfigs;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;
import org.quotahost.util.BrokerConfigs;

/**
 * Translates a Java client's configuration into librdkafka's, for the clients of Python plugins.
 *
 * <p>Keystores of any type become PEM texts, which librdkafka takes as values, and a JAAS configuration becomes user
 * and password. The map contains secrets.
 */
public final class LibrdkafkaConfig {
    private static final String IDENTIFICATION = "ssl.endpoint.identification.algorithm";
    /** Properties that have the same name and meaning in both. */
    private static final List<String> SAME = List.of("bootstrap.servers", "security.protocol", "sasl.mechanism",
            "client.id", "request.timeout.ms", IDENTIFICATION, "ssl.cipher.suites");
    private static final Base64.Encoder LINES = Base64.getMimeEncoder(64, new byte[] {'\n'});

    private LibrdkafkaConfig() {}

    /**
     * The configuration for librdkafka.
     *
     * @throws Exception whatever Kafka's SSL code throws for a keystore that cannot be read
     */
    public static Map<String, String> of(Map<String, ?> java) throws Exception {
        Map<String, String> config = new LinkedHashMap<>();
        for (String name : SAME) if (java.get(name) != null) config.put(name, BrokerConfigs.text(java.get(name)));
        // For "no check of host names" Java has an empty text, librdkafka a word.
        if ("".equals(config.get(IDENTIFICATION))) config.put(IDENTIFICATION, "none");
        String protocol = BrokerConfigs.text(java.get("security.protocol"));
        if (!protocol.endsWith("SSL")) config.keySet().removeIf(name -> name.startsWith("ssl."));
        else pem(java, config);
        if (protocol.startsWith("SASL_")) login(BrokerConfigs.text(java.get("sasl.jaas.config")), config);
        return config;
    }

    private static void login(String jaas, Map<String, String> config) {
        BrokerPrincipal.find("username", jaas).ifPresent(user -> config.put("sasl.username", user));
        BrokerPrincipal.find("password", jaas).ifPresent(password -> config.put("sasl.password", password));
    }

    private static void pem(Map<String, ?> java, Map<String, String> config) throws Exception {
        Map<String, Object> ssl = new LinkedHashMap<>();
        java.forEach((name, value) -> {
            if (name.startsWith("ssl.") && value != null) ssl.put(name, value);
        });
        ConfigDef known = new ConfigDef();
        SslConfigs.addClientSslSupport(known);
        try (DefaultSslEngineFactory factory = new DefaultSslEngineFactory()) {
            Map<String, ?> values = new AbstractConfig(known, ssl, false).values();
            factory.configure(values);
            if (factory.truststore() != null) config.put("ssl.ca.pem", certificates(factory.truststore()));
            if (factory.keystore() != null) key(factory.keystore(), values, config);
        }
    }

    private static String certificates(KeyStore store) throws Exception {
        StringBuilder pem = new StringBuilder();
        for (String alias : Collections.list(store.aliases())) {
            Certificate certificate = store.getCertificate(alias);
            if (certificate != null) pem.append(block("CERTIFICATE", certificate.getEncoded()));
        }
        return pem.toString();
    }

    private static void key(KeyStore store, Map<String, ?> values, Map<String, String> config) throws Exception {
        Object secret = values.get(SslConfigs.SSL_KEY_PASSWORD_CONFIG);
        if (secret == null) secret = values.get(SslConfigs.SSL_KEYSTORE_PASSWORD_CONFIG);
        char[] password = secret == null ? null : BrokerConfigs.text(secret).toCharArray();
        for (String alias : Collections.list(store.aliases())) {
            if (!store.isKeyEntry(alias)) continue;
            Key key = store.getKey(alias, password);
            StringBuilder chain = new StringBuilder();
            for (Certificate each : store.getCertificateChain(alias)) {
                chain.append(block("CERTIFICATE", each.getEncoded()));
            }
            config.put("ssl.key.pem", block("PRIVATE KEY", key.getEncoded()));
            config.put("ssl.certificate.pem", chain.toString());
            return;
        }
    }

    private static String block(String what, byte[] der) {
        return "-----BEGIN " + what + "-----\n" + LINES.encodeToString(der) + "\n-----END " + what + "-----\n";
    }
}
