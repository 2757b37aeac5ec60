package org.quotahost;

import static org.quotahost.BrokerListener.list;

import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.security.JaasContext;
import org.apache.kafka.common.security.kerberos.KerberosName;
import org.apache.kafka.common.security.kerberos.KerberosShortNamer;

/** As whom a broker logs in to others by SASL: from the JAAS context that Kafka itself would use for it. */
final class BrokerLogin {
    private BrokerLogin() {}

    /** The principals; none if the login module's options don't name one. Throws what Kafka throws for a bad JAAS text. */
    static List<String> names(BrokerListener listener) throws IOException {
        String option = switch (listener.mechanism()) {
            case "GSSAPI" -> "principal";
            case "OAUTHBEARER" -> "unsecuredLoginStringClaim_sub";
            default -> "username";
        };
        List<String> found = entries(listener).flatMap(entry -> Stream.ofNullable(entry.getOptions().get(option)))
                .map(Object::toString).filter(name -> !name.isEmpty() && !name.equals("*")).toList();
        if (found.isEmpty() || !option.equals("principal")) return found;
        return List.of(shortName(found.get(0), listener.configs()));
    }

    /** Only listener.name.NAME.MECHANISM.sasl.jaas.config, or else the JVM's JAAS file: Kafka heeds no other in a broker. */
    private static Stream<AppConfigurationEntry> entries(BrokerListener listener) {
        String property = listener.name().saslMechanismConfigPrefix(listener.mechanism()) + "sasl.jaas.config";
        Map<String, Object> jaas = new HashMap<>();
        Object given = listener.configs().get(property);
        if (given != null) {
            jaas.put(listener.mechanism().toLowerCase(Locale.ROOT) + ".sasl.jaas.config",
                    given instanceof Password secret ? secret : new Password(given.toString()));
        }
        return JaasContext.loadServerContext(listener.name(), listener.mechanism(), jaas).configurationEntries().stream();
    }

    /** The broker's realm is taken for the default one, so DEFAULT takes kafka/host@REALM to kafka. */
    private static String shortName(String principal, Map<String, ?> configs) throws IOException {
        KerberosName name = KerberosName.parse(principal.contains("@") ? principal : principal + "@LOCAL");
        List<String> rules = list(configs, "sasl.kerberos.principal.to.local.rules");
        return KerberosShortNamer.fromUnparsedRules(name.realm(), rules.isEmpty() ? null : rules).shortName(name);
    }
}
