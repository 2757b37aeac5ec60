package org.quotahost.util;

import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.apache.kafka.common.config.types.Password;

/**
 * A broker's properties, read as texts and by listener.
 *
 * <p>Kafka hands plugins a map whose values are partly parsed (Password, List, Integer) and partly not. This record
 * reads both forms in one way, for all classes that derive something from the broker's own properties: the host's
 * configuration, the brokers' principals, a client's configuration. Values may be secrets.
 */
public record BrokerConfigs(Map<String, ?> values) {
    /** Every property of quotahost begins with this; Kafka lets the callback choose the names that follow. */
    public static final String PREFIX = "client.quota.callback.";

    /** A value as an operator would write it in the broker's properties; "" for null. */
    public static String text(Object value) {
        if (value instanceof Password secret) return secret.value();
        if (value instanceof List<?> list) return String.join(",", list.stream().map(Objects::toString).toList());
        return Objects.toString(value, "").strip();
    }

    /** The value of a property, "" if it is not set. */
    public String text(String name) {
        return text(values.get(name));
    }

    /** The value of a property, or the default if it is not set or empty. */
    public String textOr(String name, String defaultValue) {
        String value = text(name);
        return value.isEmpty() ? defaultValue : value;
    }

    /** The parts of a property that is a list, divided by commas. */
    public Stream<String> texts(String name) {
        return Stream.of(text(name).split(",")).map(String::strip).filter(part -> !part.isEmpty());
    }

    /** Whether the node is a controller and no broker: then it has no listener of brokers. */
    public boolean controllerAlone() {
        String roles = text("process.roles");
        return roles.contains("controller") && !roles.contains("broker");
    }

    /** The name of the listener by which brokers reach each other. */
    public String interBrokerListener() {
        return textOr("inter.broker.listener.name", textOr("security.inter.broker.protocol", "PLAINTEXT"));
    }

    /**
     * The security protocol of a listener by listener.security.protocol.map; a listener may be named like its
     * protocol.
     */
    public String protocol(String listener) {
        for (String pair : text("listener.security.protocol.map").split(",")) {
            String[] parts = pair.strip().split(":");
            if (parts.length == 2 && parts[0].equalsIgnoreCase(listener)) return parts[1].toUpperCase(Locale.ROOT);
        }
        return listener.toUpperCase(Locale.ROOT);
    }

    /** The prefix of the properties that one listener has instead of the broker's own ones. */
    public static String prefix(String listener) {
        return "listener.name." + listener.toLowerCase(Locale.ROOT) + ".";
    }

    /**
     * All properties that are set. A property with the prefix stands under its name without the prefix, where it
     * overrides the broker's own.
     */
    public Map<String, Object> overridden(String prefix) {
        Map<String, Object> own = new HashMap<>();
        values.forEach((name, value) -> {
            if (value != null) own.put(name, value);
        });
        values.forEach((name, value) -> {
            if (name.startsWith(prefix) && value != null) own.put(name.substring(prefix.length()), value);
        });
        return own;
    }

    /** Only the names, since values may be secrets. */
    @Override
    public String toString() {
        return "BrokerConfigs" + values.keySet();
    }
}
