package org.quotahost.cluster;

import java.security.KeyStore;
import java.security.cert.X509Certificate;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.SslConfigs;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * The principal that a broker has at an SSL listener: the name that Kafka makes of the certificate in its keystore
 * (DefaultKafkaPrincipalBuilder). BrokerPrincipal asks for it.
 */
final class KeystoreSubject {
    private static final String RULES = "ssl.principal.mapping.rules";

    private KeystoreSubject() {}

    /**
     * The name: ANONYMOUS if the listener asks for no certificates, empty if the keystore has no key.
     *
     * @param own the properties of the listener; this method changes them
     * @throws Exception whatever Kafka's SSL code throws for a keystore that cannot be read
     */
    static Optional<String> name(Map<String, Object> own) throws Exception {
        if (!asksForCertificates(own)) return Optional.of("ANONYMOUS");
        own.keySet().removeIf(name -> !name.startsWith("ssl.") || name.startsWith("ssl.truststore."));
        Object rules = own.getOrDefault(RULES, "DEFAULT");
        ConfigDef known = new ConfigDef();
        SslConfigs.addClientSslSupport(known);
        try (DefaultSslEngineFactory factory = new DefaultSslEngineFactory()) {
            factory.configure(new AbstractConfig(known, own, false).values());
            return subject(factory.keystore()).map(dn -> mapped(dn, Objects.toString(rules, "DEFAULT")));
        }
    }

    /** Whether the listener asks (ssl.client.auth); by default it does not, and for Kafka every peer is ANONYMOUS. */
    private static boolean asksForCertificates(Map<String, Object> own) {
        String clientAuth = Objects.toString(own.get("ssl.client.auth"), "none").strip();
        return clientAuth.equalsIgnoreCase("required") || clientAuth.equalsIgnoreCase("requested");
    }

    private static Optional<String> subject(KeyStore keystore) throws Exception {
        if (keystore == null) return Optional.empty();
        for (var aliases = keystore.aliases(); aliases.hasMoreElements();) {
            String alias = aliases.nextElement();
            if (keystore.isKeyEntry(alias) && keystore.getCertificate(alias) instanceof X509Certificate certificate) {
                return Optional.of(certificate.getSubjectX500Principal().getName());
            }
        }
        return Optional.empty();
    }

    private static String mapped(String dn, String rules) {
        try {
            return SslPrincipalMapper.fromRules(rules).getName(dn);
        } catch (java.io.IOException e) {
            return dn;
        }
    }
}
