package org.quotahost.util;

import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.common.config.types.Password;

/** A broker's configuration, parsed or not, read as texts and by listener. Values may be secrets. */
public record BrokerConfigs(Map<String, ?> values) {
    /** How the names of all properties of quotahost begin; Kafka gives this callback the names with it. */
    public static final String PREFIX = "client.quota.callback.";

    /** A value as one would write it in the broker's properties; "" for none. */
    public static String text(Object value) {
        if (value instanceof Password secret) return secret.value();
        if (value instanceof List<?> list) return String.join(",", list.stream().map(Objects::toString).toList());
        return Objects.toString(value, "").strip();
    }

    public String text(String name) {
        return text(values.get(name));
    }

    public String textOr(String name, String otherwise) {
        String value = text(name);
        return value.isEmpty() ? otherwise : value;
    }

    /** The listener by which brokers reach each other. */
    public String interBrokerListener() {
        return textOr("inter.broker.listener.name", textOr("security.inter.broker.protocol", "PLAINTEXT"));
    }

    /** The security protocol of a listener by listener.security.protocol.map. */
    public String protocol(String listener) {
        for (String pair : text("listener.security.protocol.map").split(",")) {
            String[] parts = pair.strip().split(":");
            if (parts.length == 2 && parts[0].equalsIgnoreCase(listener)) return parts[1].toUpperCase(Locale.ROOT);
        }
        return listener.toUpperCase(Locale.ROOT);
    }

    /** How the names begin of what a listener has instead of the broker's own. */
    public static String prefix(String listener) {
        return "listener.name." + listener.toLowerCase(Locale.ROOT) + ".";
    }

    /** All that is set, and over it, by their plain names, those that begin with the prefix. */
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

    /** Values may be secrets. */
    @Override
    public String toString() {
        return "BrokerConfigs" + values.keySet();
    }
}
