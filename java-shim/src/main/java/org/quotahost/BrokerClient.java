package org.quotahost;

import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.apache.kafka.common.config.types.Password;

/**
 * How a client reaches this broker as the brokers reach each other: the inter-broker listener's address and security,
 * as Java's clients want them. The map holds secrets.
 */
final class BrokerClient {
    private final Map<String, ?> configs;
    private final String listener;

    private BrokerClient(Map<String, ?> configs) {
        this.configs = configs;
        String named = text("inter.broker.listener.name");
        this.listener = !named.isEmpty() ? named : textOr("security.inter.broker.protocol", "PLAINTEXT");
    }

    /** Empty on a node that is no broker. */
    static Map<String, Object> of(Map<String, ?> configs) {
        BrokerClient client = new BrokerClient(configs);
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
        for (String each : text(property).split(",")) {
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
        String protocol = BrokerPrincipal.protocol(text("listener.security.protocol.map"), listener);
        made.put("security.protocol", protocol);
        String prefix = "listener.name." + listener.toLowerCase(Locale.ROOT) + ".";
        if (protocol.endsWith("SSL")) copy("ssl.", prefix, made);
        if (protocol.startsWith("SASL_")) {
            String mechanism = textOr("sasl.mechanism.inter.broker.protocol", "GSSAPI");
            copy("sasl.", prefix, made);
            copy("sasl.", prefix + mechanism.toLowerCase(Locale.ROOT) + ".", made);
            made.put("sasl.mechanism", mechanism);
        }
    }

    /** All that begins so, first the broker's own, then what the listener has instead. */
    private void copy(String begin, String prefix, Map<String, Object> made) {
        configs.forEach((name, value) -> {
            if (name.startsWith(begin) && value != null) made.put(name, value);
        });
        configs.forEach((name, value) -> {
            if (name.startsWith(prefix + begin) && value != null) made.put(name.substring(prefix.length()), value);
        });
    }

    private String textOr(String name, String otherwise) {
        String value = text(name);
        return value.isEmpty() ? otherwise : value;
    }

    private String text(String name) {
        Object value = configs.get(name);
        if (value instanceof Password secret) return secret.value();
        if (value instanceof java.util.List<?> list) return String.join(",", list.stream().map(Objects::toString).toList());
        return Objects.toString(value, "").strip();
    }
}
