package org.quotahost.cluster;

import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.quotahost.util.BrokerConfigs;

/**
 * The configuration of a Java client that reaches this broker as the brokers reach each other.
 *
 * <p>It takes address and security from the inter-broker listener, so that plugins need no credentials of their own. A
 * controller that is no broker has no such listener: there it is what static.kafka.admin.* says.
 * ClusterAdmin uses it, and LibrdkafkaConfig translates it. The map contains secrets.
 */
public final class BrokerClient {
    private static final String GIVEN = BrokerConfigs.PREFIX + "static.kafka.admin.";

    private final BrokerConfigs configs;
    private final String listener;

    private BrokerClient(BrokerConfigs configs) {
        this.configs = configs;
        this.listener = configs.interBrokerListener();
    }

    /** The configuration; empty on a node that is no broker and has no static.kafka.admin.bootstrap.servers. */
    public static Map<String, Object> of(Map<String, ?> configs) {
        if (new BrokerConfigs(configs).controllerAlone()) return given(configs);
        BrokerClient client = new BrokerClient(new BrokerConfigs(configs));
        Map<String, Object> config = new HashMap<>();
        client.address().ifPresent(address -> {
            config.put("bootstrap.servers", address);
            client.security(config);
        });
        return config;
    }

    private static Map<String, Object> given(Map<String, ?> configs) {
        Map<String, Object> config = new HashMap<>();
        configs.forEach((name, value) -> {
            if (name.startsWith(GIVEN)) config.put(name.substring(GIVEN.length()), BrokerConfigs.text(value));
        });
        return config.containsKey("bootstrap.servers") ? config : Map.of();
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
            // A broker that listens everywhere is reachable from itself as localhost.
            boolean anywhere = host.isEmpty() || host.equals("0.0.0.0") || host.equals("[::]");
            return Optional.of((anywhere ? "localhost" : host) + parts[1].substring(Math.max(0, colon)));
        }
        return Optional.empty();
    }

    private void security(Map<String, Object> config) {
        String protocol = configs.protocol(listener);
        config.put("security.protocol", protocol);
        String prefix = BrokerConfigs.prefix(listener);
        if (protocol.endsWith("SSL")) copy("ssl.", prefix, config);
        if (protocol.startsWith("SASL_")) {
            String mechanism = configs.textOr("sasl.mechanism.inter.broker.protocol", "GSSAPI");
            copy("sasl.", prefix, config);
            copy("sasl.", prefix + mechanism.toLowerCase(Locale.ROOT) + ".", config);
            config.put("sasl.mechanism", mechanism);
        }
    }

    /** Copies the properties whose names begin so; those with the listener's prefix override the broker's. */
    private void copy(String begin, String prefix, Map<String, Object> config) {
        configs.overridden(prefix).forEach((name, value) -> {
            if (name.startsWith(begin)) config.put(name, value);
        });
    }
}
