package org.quotahost.cluster;

import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.quotahost.util.BrokerConfigs;

/**
 * How a client reaches this broker as the brokers reach each other: the inter-broker listener's address and security,
 * as Java's clients want them. The map holds secrets.
 */
public final class BrokerClient {
    private final BrokerConfigs configs;
    private final String listener;

    private BrokerClient(BrokerConfigs configs) {
        this.configs = configs;
        this.listener = configs.interBrokerListener();
    }

    /** Empty on a node that is no broker. */
    public static Map<String, Object> of(Map<String, ?> configs) {
        BrokerClient client = new BrokerClient(new BrokerConfigs(configs));
        Map<String, Object> made = new HashMap<>();
        client.address().ifPresent(address -> {
            made.put("bootstrap.servers", address);
            client.security(made);
        });
        return made;
    }

    private Optional<String> address() {
        return endpoint("advertised.listeners").or(() -> endpoint("listeners"));
    }

    private Optional<String> endpoint(String property) {
        for (String each : configs.text(property).split(",")) {
            String[] parts = each.strip().split("://", 2);
            if (parts.length < 2 || !parts[0].equalsIgnoreCase(listener)) continue;
            int colon = parts[1].lastIndexOf(':');
            String host = parts[1].substring(0, Math.max(0, colon));
            boolean anywhere = host.isEmpty() || host.equals("0.0.0.0") || host.equals("[::]");
            return Optional.of((anywhere ? "localhost" : host) + parts[1].substring(Math.max(0, colon)));
        }
        return Optional.empty();
    }

    private void security(Map<String, Object> made) {
        String protocol = configs.protocol(listener);
        made.put("security.protocol", protocol);
        String prefix = BrokerConfigs.prefix(listener);
        if (protocol.endsWith("SSL")) copy("ssl.", prefix, made);
        if (protocol.startsWith("SASL_")) {
            String mechanism = configs.textOr("sasl.mechanism.inter.broker.protocol", "GSSAPI");
            copy("sasl.", prefix, made);
            copy("sasl.", prefix + mechanism.toLowerCase(Locale.ROOT) + ".", made);
            made.put("sasl.mechanism", mechanism);
        }
    }

    /** All that begins so, first the broker's own, then what the listener has instead. */
    private void copy(String begin, String prefix, Map<String, Object> made) {
        configs.overridden(prefix).forEach((name, value) -> {
            if (name.startsWith(begin)) made.put(name, value);
        });
    }
}
