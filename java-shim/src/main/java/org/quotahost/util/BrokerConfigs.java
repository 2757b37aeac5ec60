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
 * Which properties, of those that Kafka hands to a callback, the Python host gets, as an operator would write them.
 * What they mean is Python's. Values may be secrets.
 *
 * @param properties those whose names begin with PREFIX, but for the callback's class
 * @param broker those of the broker's own that say what it is and how brokers and clients connect to it
 */
public record BrokerConfigs(Map<String, String> properties, Map<String, String> broker) {
    /** Every property of quotahost begins with this; Kafka lets the callback choose the names that follow. */
    public static final String PREFIX = "client.quota.callback.";
    /** How the names of the broker's own properties begin that Python gets. */
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
     * A value as an operator would write it in the broker's properties; "" for null. Kafka hands plugins a map whose
     * values are partly parsed (Password, List, Class, Integer) and partly not.
     */
    public static String text(Object value) {
        if (value instanceof Password secret) return secret.value();
        if (value instanceof Class<?> type) return type.getName();
        if (value instanceof List<?> list) return String.join(",", list.stream().map(Objects::toString).toList());
        return Objects.toString(value, "").strip();
    }

    /** Log directories as Kafka names them; a plugin may change the working directory of Python's process. */
    private static String absolute(String directories) {
        return Stream.of(directories.split(",")).map(String::strip).filter(each -> !each.isEmpty())
                .map(each -> new File(each).getAbsolutePath()).collect(Collectors.joining(","));
    }

    private Stream<String> listeners(String property) {
        return Stream.of(broker.getOrDefault(property, "").split(",")).map(String::strip).filter(each -> !each.isEmpty())
                .map(each -> each.split(":")[0].toUpperCase(Locale.ROOT));
    }

    /** The names of listeners for the cluster's own nodes: of controllers, and of brokers where clients have another one. */
    public Set<String> ownListeners() {
        Set<String> own = listeners("controller.listener.names").collect(Collectors.toSet());
        String protocol = broker.getOrDefault("security.inter.broker.protocol", "PLAINTEXT");
        String brokers = broker.getOrDefault("inter.broker.listener.name", protocol).toUpperCase(Locale.ROOT);
        if (listeners("listeners").anyMatch(each -> !own.contains(each) && !each.equals(brokers))) own.add(brokers);
        return own;
    }

    /** The names of all that Kafka can change of its listeners' keystores while it runs (KIP-226). */
    public Stream<String> keystores() {
        return listeners("listeners").map(listener -> "listener.name." + listener.toLowerCase(Locale.ROOT) + ".")
                .flatMap(prefix -> SslConfigs.RECONFIGURABLE_CONFIGS.stream().map(prefix::concat));
    }

    public String executable() {
        return properties.getOrDefault(PREFIX + "python.executable", "python3");
    }

    /** Whether Python gets a process of its own. */
    public boolean inChild() {
        return properties.getOrDefault(PREFIX + "python.process", "").equals("child");
    }

    /** A new value of it has another Python start beside the one that runs (python.generation). */
    public String generation() {
        return properties.getOrDefault(PREFIX + "python.generation", "");
    }

    /** A map as it comes from Python: names and values alternate. */
    public static Map<String, String> pairs(String[] flat) {
        Map<String, String> map = new TreeMap<>();
        for (int i = 0; i < flat.length; i += 2) map.put(flat[i], flat[i + 1]);
        return map;
    }

    /** Only the names, since values may be secrets. */
    @Override
    public String toString() {
        return "BrokerConfigs" + properties.keySet();
    }
}
