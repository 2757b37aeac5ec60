package org.quotahost.util;

import java.io.File;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.common.config.SslConfigs;
import org.apache.kafka.common.config.types.Password;

/**
 * The properties that the Python host gets of those that Kafka hands to a callback, in the form in which an operator writes
 * them. Python interprets them. Values may be secrets.
 *
 * @param properties those whose names begin with PREFIX, except the callback's class
 * @param broker the broker's own properties that say what it is and how brokers and clients connect to it
 */
public record BrokerConfigs(Map<String, String> properties, Map<String, String> broker) {
    /** The prefix of all properties of quotahost; Kafka lets the callback choose the names after it. */
    public static final String PREFIX = "client.quota.callback.";
    /** The prefixes of the broker's own properties that Python gets. */
    private static final List<String> OF_THE_BROKER = List.of("node.id", "broker.id", "process.roles", "log.dir",
            "quota.window.", "controller.quota.window.", "remote.log.storage.system.enable",
            "listener", "advertised.listeners", "inter.broker.listener.name", "controller.listener.names",
            "security.", "sasl.", "ssl.", "principal.builder.class");

    public static BrokerConfigs of(Map<String, ?> configs) {
        Map<String, String> properties = new TreeMap<>();
        Map<String, String> broker = new TreeMap<>();
        configs.forEach((name, value) -> {
            if (name.startsWith(PREFIX)) properties.put(name, text(value));
            else if (value != null && OF_THE_BROKER.stream().anyMatch(name::startsWith)) {
                broker.put(name, name.startsWith("log.dir") ? absolute(text(value)) : text(value));
            }
        });
        properties.remove(PREFIX + "class");
        return new BrokerConfigs(properties, broker);
    }

    /**
     * Returns a value as an operator would write it in the broker's properties; "" for null. In the map that Kafka hands to
     * plugins some values are parsed (Password, List, Class, Integer) and others are not.
     */
    public static String text(Object value) {
        if (value instanceof Password secret) return secret.value();
        if (value instanceof Class<?> type) return type.getName();
        if (value instanceof List<?> list) return String.join(",", list.stream().map(Objects::toString).toList());
        return Objects.toString(value, "").strip();
    }

    /** Returns log directories as absolute paths, as Kafka names them; a plugin may change Python's working directory. */
    private static String absolute(String directories) {
        return Stream.of(directories.split(",")).map(String::strip).filter(each -> !each.isEmpty())
                .map(each -> new File(each).getAbsolutePath()).collect(Collectors.joining(","));
    }

    private Stream<String> listeners(String property) {
        return Stream.of(broker.getOrDefault(property, "").split(",")).map(String::strip).filter(each -> !each.isEmpty())
                .map(each -> each.split(":")[0].toUpperCase(Locale.ROOT));
    }

    /** Returns the listeners of the cluster's own nodes: the controllers', and the brokers' if clients use another listener. */
    public Set<String> ownListeners() {
        Set<String> own = listeners("controller.listener.names").collect(Collectors.toSet());
        String protocol = broker.getOrDefault("security.inter.broker.protocol", "PLAINTEXT");
        String brokers = broker.getOrDefault("inter.broker.listener.name", protocol).toUpperCase(Locale.ROOT);
        if (listeners("listeners").anyMatch(each -> !own.contains(each) && !each.equals(brokers))) own.add(brokers);
        return own;
    }

    /** Returns the names of all keystore properties of this broker's listeners that Kafka can change at runtime (KIP-226). */
    public Stream<String> keystores() {
        return listeners("listeners").map(listener -> "listener.name." + listener.toLowerCase(Locale.ROOT) + ".")
                .flatMap(prefix -> SslConfigs.RECONFIGURABLE_CONFIGS.stream().map(prefix::concat));
    }

    public String executable() {
        return properties.getOrDefault(PREFIX + "python.executable", "python3");
    }

    /** Returns whether Python gets a process of its own. */
    public boolean inChild() {
        return properties.getOrDefault(PREFIX + "python.process", "").equals("child");
    }

    /** Returns python.generation. A new value makes another Python start beside the running one. */
    public String generation() {
        return properties.getOrDefault(PREFIX + "python.generation", "");
    }

    /** Returns the map that Python sends as an array in which names and values alternate. */
    public static Map<String, String> pairs(String[] flat) {
        Map<String, String> map = new TreeMap<>();
        for (int i = 0; i < flat.length; i += 2) map.put(flat[i], flat[i + 1]);
        return map;
    }

    /** Returns only the names, since values may be secrets. */
    @Override
    public String toString() {
        return "BrokerConfigs" + properties.keySet();
    }
}
