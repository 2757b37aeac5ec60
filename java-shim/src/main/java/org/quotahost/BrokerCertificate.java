package org.quotahost;

import static org.quotahost.BrokerListener.text;

import java.io.IOException;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.SslConfigs;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/** As whom a broker shows up by its TLS certificate: Kafka's own keystore loading and principal mapping. */
final class BrokerCertificate {
    private static final String ANONYMOUS = "ANONYMOUS";

    private BrokerCertificate() {}

    /** A name for each key in the keystore; ANONYMOUS where the listener asks for no client certificate. */
    static List<String> names(BrokerListener listener) throws GeneralSecurityException, IOException {
        String clientAuth = text(listener.configs(), "ssl.client.auth", "none").toLowerCase(Locale.ROOT);
        if (!clientAuth.equals("required") && !clientAuth.equals("requested")) return List.of(ANONYMOUS);
        KeyStore keystore = keystore(listener.configs());
        return keystore == null ? List.of() : names(keystore, text(listener.configs(), "ssl.principal.mapping.rules", null));
    }

    private static List<String> names(KeyStore keystore, String rules) throws GeneralSecurityException, IOException {
        SslPrincipalMapper mapper = SslPrincipalMapper.fromRules(rules);
        List<String> names = new ArrayList<>();
        for (String alias : Collections.list(keystore.aliases())) {
            if (keystore.isKeyEntry(alias) && keystore.getCertificate(alias) instanceof X509Certificate certificate) {
                names.add(mapper.getName(certificate.getSubjectX500Principal().getName()));
            }
        }
        return names;
    }

    /** Null if there is none, or if it is not for Kafka's own engine factory to load. */
    private static KeyStore keystore(Map<String, ?> configs) {
        if (!text(configs, "ssl.engine.factory.class", "").isEmpty()) return null;
        ConfigDef ssl = new ConfigDef();
        SslConfigs.addClientSslSupport(ssl);
        Map<String, Object> raw = new HashMap<>();
        configs.forEach((name, value) -> {
            if (name.startsWith("ssl.key") && value != null && ssl.names().contains(name)) raw.put(name, value);
        });
        try (DefaultSslEngineFactory factory = new DefaultSslEngineFactory()) {
            factory.configure(ssl.parse(raw));
            return factory.keystore();
        }
    }
}
