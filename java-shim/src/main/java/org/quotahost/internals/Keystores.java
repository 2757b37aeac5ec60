package org.quotahost.internals;

import java.io.IOException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.SslConfigs;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;
import org.quotahost.util.BrokerConfigs;

/** A reader of keystores of any type, as Kafka reads them, for librdkafka, which reads only PEM: certificates, secrets, principal. */
public final class Keystores {
    static final String WEAKER = "SSL principals of brokers and credentials of plugins are not derived from"
            + " keystores; name them in " + BrokerConfigs.PREFIX + "static.excluded.principal.name.list and "
            + BrokerConfigs.PREFIX + "kafka.*";

    private static final Base64.Encoder LINES = Base64.getMimeEncoder(64, new byte[] {'\n'});

    private Keystores() {}

    /**
     * Returns the contents of the stores: ssl.ca.pem (all certificates of the truststore), and from the keystore's first
     * private key ssl.key.pem, ssl.certificate.pem (its chain) and principal (the name that Kafka makes of the certificate,
     * DefaultKafkaPrincipalBuilder). If a store is not named, its entries are missing.
     *
     * @param ssl properties that begin with ssl., names and values in turn, ssl.principal.mapping.rules among them
     */
    public static Map<String, String> read(String[] ssl) throws Exception {
        if (Internals.SSL.get() == null) throw new IOException(WEAKER);
        return stores(ssl);
    }

    static Map<String, String> stores(String[] ssl) throws Exception {
        Map<String, String> given = BrokerConfigs.pairs(ssl);
        String rules = given.getOrDefault("ssl.principal.mapping.rules", "DEFAULT");
        ConfigDef known = new ConfigDef();
        SslConfigs.addClientSslSupport(known);
        Map<String, ?> values = new AbstractConfig(known, given, false).values();
        Map<String, String> found = new HashMap<>();
        try (DefaultSslEngineFactory factory = new DefaultSslEngineFactory()) {
            factory.configure(values);
            KeyStore trusted = factory.truststore();
            if (trusted != null) {
                List<Certificate> all = new ArrayList<>();
                for (String alias : Collections.list(trusted.aliases())) all.add(trusted.getCertificate(alias));
                found.put("ssl.ca.pem", pem(all));
            }
            if (factory.keystore() != null) key(factory.keystore(), values, rules, found);
        }
        return found;
    }

    private static void key(KeyStore store, Map<String, ?> values, String rules, Map<String, String> found) throws Exception {
        Object secret = values.get(SslConfigs.SSL_KEY_PASSWORD_CONFIG);
        if (secret == null) secret = values.get(SslConfigs.SSL_KEYSTORE_PASSWORD_CONFIG);
        char[] password = secret == null ? null : BrokerConfigs.text(secret).toCharArray();
        for (String alias : Collections.list(store.aliases())) {
            if (!store.entryInstanceOf(alias, KeyStore.PrivateKeyEntry.class)) continue; // Kafka skips secret keys, too
            found.put("ssl.key.pem", block("PRIVATE KEY", store.getKey(alias, password).getEncoded()));
            found.put("ssl.certificate.pem", pem(List.of(store.getCertificateChain(alias))));
            if (store.getCertificate(alias) instanceof X509Certificate certificate) {
                found.put("principal", mapped(certificate.getSubjectX500Principal().getName(), rules));
            }
            return;
        }
    }

    private static String mapped(String subject, String rules) {
        try {
            return SslPrincipalMapper.fromRules(rules).getName(subject);
        } catch (IOException e) {
            return subject; // no rule fits
        }
    }

    private static String pem(List<Certificate> certificates) throws Exception {
        StringBuilder all = new StringBuilder();
        for (Certificate each : certificates) if (each != null) all.append(block("CERTIFICATE", each.getEncoded()));
        return all.toString();
    }

    private static String block(String what, byte[] der) {
        return "-----BEGIN " + what + "-----\n" + LINES.encodeToString(der) + "\n-----END " + what + "-----\n";
    }
}
