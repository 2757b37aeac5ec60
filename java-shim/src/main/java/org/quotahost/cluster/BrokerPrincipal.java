package org.quotahost.cluster;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.quotahost.util.BrokerConfigs;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The principals that the brokers of this cluster have at each other's listeners, for the host to exempt them from
 * quotas.
 *
 * <p>It derives them from this broker's own configuration, since the brokers of a cluster share their credentials. If
 * it cannot find one out, it logs the property in which to name it.
 *
 * <p>If ANONYMOUS is among them, the host goes by client-ids, which anybody can claim. So it is only where brokers do
 * not authenticate to each other, or where nobody but nodes can be ANONYMOUS: at the listeners of controllers.
 */
public final class BrokerPrincipal {
    private static final Logger LOG = LoggerFactory.getLogger("quotahost.principals");
    private static final String ANONYMOUS = "ANONYMOUS";
    /** An option of a JAAS configuration: its name and its value, each quoted (with backslash escapes) or bare. */
    private static final Pattern OPTION =
            Pattern.compile("\"?([\\w.]+)\"?\\s*=\\s*(?:\"((?:[^\"\\\\]|\\\\.)*)\"|([^\\s;\"]+))");

    private final BrokerConfigs configs;

    private BrokerPrincipal(BrokerConfigs configs) {
        this.configs = configs;
    }

    /** The names of the principals, without the type ("User:"), each once. */
    public static List<String> names(Map<String, ?> configs) {
        BrokerPrincipal broker = new BrokerPrincipal(new BrokerConfigs(configs));
        Set<String> names = new LinkedHashSet<>();
        for (String listener : broker.listeners()) {
            try {
                Optional<String> name = broker.name(listener);
                if (name.isEmpty()) unknown(listener, "");
                else if (!name.get().equals(ANONYMOUS) || broker.decides(listener)) names.add(name.get());
            } catch (Exception e) {
                // Not the message, which may contain a secret.
                unknown(listener, ": " + e.getClass().getSimpleName());
            }
        }
        return new ArrayList<>(names);
    }

    private static void unknown(String listener, String why) {
        LOG.warn("The principal of brokers at listener {} can't be found in the configuration{}. If they authenticate,"
                + " name it in {}static.excluded.principal.name.list, or brokers may be throttled", listener, why,
                BrokerConfigs.PREFIX);
    }

    /** Whether a listener that lets everybody in as ANONYMOUS shows that nodes are: clients must not use others. */
    private boolean decides(String listener) {
        if (configs.controllerAlone() || listener.equals(configs.interBrokerListener())) return true;
        return configs.texts("listeners").map(each -> each.split(":")[0])
                .allMatch(name -> controllers().contains(name) || authenticates(name));
    }

    private boolean authenticates(String listener) {
        String protocol = configs.protocol(listener);
        if (!protocol.equals("SSL")) return protocol.startsWith("SASL_");
        String own = BrokerConfigs.prefix(listener) + "ssl.client.auth";
        return configs.textOr(own, configs.text("ssl.client.auth")).equalsIgnoreCase("required");
    }

    /** The listeners that brokers connect to: the inter-broker listener and those of the controllers. */
    private List<String> listeners() {
        List<String> listeners = new ArrayList<>();
        if (!configs.controllerAlone()) listeners.add(configs.interBrokerListener());
        listeners.addAll(controllers());
        return listeners;
    }

    private List<String> controllers() {
        return configs.texts("controller.listener.names").toList();
    }

    private Optional<String> name(String listener) throws Exception {
        String protocol = configs.protocol(listener);
        if (protocol.startsWith("SASL_")) return saslName(listener);
        if (protocol.equals("SSL")) return KeystoreSubject.name(configs.overridden(BrokerConfigs.prefix(listener)));
        return Optional.of(ANONYMOUS);
    }

    /**
     * The user in the JAAS configuration with which this broker logs in as a client (JaasContext.loadClientContext).
     */
    private Optional<String> saslName(String listener) {
        boolean controller = controllers().contains(listener);
        String property = controller ? "sasl.mechanism.controller.protocol" : "sasl.mechanism.inter.broker.protocol";
        String mechanism = configs.textOr(property, "GSSAPI");
        String own = BrokerConfigs.prefix(listener) + mechanism.toLowerCase(Locale.ROOT) + ".sasl.jaas.config";
        String jaas = configs.textOr(own, configs.text("sasl.jaas.config"));
        return switch (mechanism) {
            case "GSSAPI" -> find("principal", jaas).map(name -> name.split("[/@]")[0]);
            case "OAUTHBEARER" -> find("unsecuredLoginStringClaim_sub", jaas);
            default -> find("username", jaas);
        };
    }

    /**
     * The value of one option of a JAAS configuration. It reads option by option from the left, so that it mistakes
     * no text within a quoted value for an option.
     */
    static Optional<String> find(String name, String jaas) {
        Matcher option = OPTION.matcher(jaas);
        while (option.find()) {
            if (!option.group(1).equals(name)) continue;
            String quoted = option.group(2);
            return Optional.of(quoted != null ? quoted.replaceAll("\\\\(.)", "$1") : option.group(3));
        }
        return Optional.empty();
    }
}
