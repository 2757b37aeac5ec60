package org.quotahost;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;

/**
 * A listener on which this node meets others of its cluster, by the rules of Kafka's AbstractKafkaConfig.
 *
 * @param protocol null if the configuration doesn't say
 * @param mechanism the SASL mechanism that brokers use there as clients
 * @param configs the node's properties with the listener's own over them; secrets included
 */
record BrokerListener(ListenerName name, SecurityProtocol protocol, String mechanism, Map<String, Object> configs) {
    private static final String GSSAPI = "GSSAPI";

    /** The inter-broker listener of a broker, and the controllers' first, which is the one that nodes connect to. */
    static List<BrokerListener> of(Map<String, ?> configs) {
        List<BrokerListener> listeners = new ArrayList<>();
        List<String> roles = list(configs, "process.roles");
        if (roles.isEmpty() || roles.contains("broker")) listeners.add(interBroker(configs));
        List<String> controllers = list(configs, "controller.listener.names");
        if (!controllers.isEmpty()) {
            listeners.add(of(configs, controllers.get(0), true, text(configs, "sasl.mechanism.controller.protocol", GSSAPI)));
        }
        return listeners;
    }

    private static BrokerListener interBroker(Map<String, ?> configs) {
        String protocol = text(configs, "security.inter.broker.protocol", "PLAINTEXT");
        String name = text(configs, "inter.broker.listener.name", "");
        String mechanism = text(configs, "sasl.mechanism.inter.broker.protocol", GSSAPI);
        if (!name.isEmpty()) return of(configs, name, false, mechanism);
        return new BrokerListener(ListenerName.normalised(protocol), named(protocol), mechanism, configs(configs, protocol));
    }

    private static BrokerListener of(Map<String, ?> configs, String name, boolean controller, String mechanism) {
        SecurityProtocol protocol = mapped(configs, name);
        if (protocol == null && controller) protocol = SecurityProtocol.PLAINTEXT; // KIP-801: the default without a mapping
        return new BrokerListener(ListenerName.normalised(name), protocol, mechanism, configs(configs, name));
    }

    /** By listener.security.protocol.map, whose default maps each protocol's name to itself. */
    private static SecurityProtocol mapped(Map<String, ?> configs, String name) {
        for (String pair : list(configs, "listener.security.protocol.map")) {
            int colon = pair.lastIndexOf(':');
            if (colon > 0 && pair.substring(0, colon).strip().equalsIgnoreCase(name)) return named(pair.substring(colon + 1));
        }
        return named(name);
    }

    private static SecurityProtocol named(String protocol) {
        String name = protocol.strip().toUpperCase(Locale.ROOT);
        return SecurityProtocol.names().contains(name) ? SecurityProtocol.forName(name) : null;
    }

    /** As AbstractConfig.valuesWithPrefixOverride does it. */
    private static Map<String, Object> configs(Map<String, ?> configs, String listener) {
        String prefix = ListenerName.normalised(listener).configPrefix();
        Map<String, Object> merged = new HashMap<>(configs);
        configs.forEach((name, value) -> {
            if (name.startsWith(prefix)) merged.put(name.substring(prefix.length()), value);
        });
        return merged;
    }

    // ---- values as Kafka gives them: raw text at first, parsed when they are reconfigured ---------------------

    static String text(Map<String, ?> configs, String name, String otherwise) {
        Object value = configs.get(name);
        String text = value instanceof Class<?> type ? type.getName() : Objects.toString(value, "").strip();
        return text.isEmpty() ? otherwise : text;
    }

    static List<String> list(Map<String, ?> configs, String name) {
        Object value = configs.get(name);
        List<String> items = value instanceof List<?> parsed ? parsed.stream().map(Objects::toString).toList()
                : Arrays.asList(Objects.toString(value, "").split(","));
        return items.stream().map(String::strip).filter(item -> !item.isEmpty()).toList();
    }

    /** Values may be secrets. */
    @Override
    public String toString() {
        return name.value() + " (" + protocol + ")";
    }
}
