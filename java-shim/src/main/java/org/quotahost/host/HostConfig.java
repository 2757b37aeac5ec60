package org.quotahost.host;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.quotahost.cluster.BrokerClient;
import org.quotahost.cluster.BrokerPrincipal;
import org.quotahost.util.BrokerConfigs;

/**
 * The part of the broker's configuration that the Python host gets.
 *
 * <p>A combined node makes one for each of its two callbacks, and each change of properties makes a new one;
 * PythonHost and Reconfiguration compare them and hand them on. Values may be secrets.
 *
 * @param properties those whose names begin with the prefix of quotahost, but for the callback's class
 * @param broker a few of the broker's own properties, and the principals of its brokers
 * @param client the configuration of a client that reaches the broker (BrokerClient)
 */
public record HostConfig(Map<String, String> properties, Map<String, String> broker, Map<String, Object> client) {
    private static final String CLASS = BrokerConfigs.PREFIX + "class";
    private static final List<String> OF_THE_BROKER = List.of(
            "node.id", "broker.id", "process.roles", "log.dirs", "log.dir",
            "quota.window.num", "quota.window.size.seconds", "controller.quota.window.num",
            "controller.quota.window.size.seconds", "remote.log.storage.system.enable");

    public static HostConfig of(Map<String, ?> configs) {
        Map<String, String> properties = new TreeMap<>();
        Map<String, String> broker = new TreeMap<>();
        configs.forEach((name, value) -> {
            boolean ours = name.startsWith(BrokerConfigs.PREFIX) && !name.equals(CLASS);
            if (ours) properties.put(name, BrokerConfigs.text(value));
            if (OF_THE_BROKER.contains(name)) broker.put(name, BrokerConfigs.text(value));
        });
        broker.put("inter.broker.principals", String.join("\n", BrokerPrincipal.names(configs)));
        return new HostConfig(properties, broker, BrokerClient.of(configs));
    }

    /** The interpreter to start (python.executable). */
    String executable() {
        return properties.getOrDefault(BrokerConfigs.PREFIX + "python.executable", "python3");
    }

    /** Whether this node is a broker, or a broker and a controller. */
    boolean isBroker() {
        return broker.getOrDefault("process.roles", "broker").contains("broker");
    }

    /** For how many seconds a bucket of partition mutations saves up its rate; by Kafka's defaults 11 samples of 1 s. */
    long mutationSeconds() {
        return Long.parseLong(broker.getOrDefault("controller.quota.window.num", "11"))
                * Long.parseLong(broker.getOrDefault("controller.quota.window.size.seconds", "1"));
    }

    /**
     * A map as Python gets it: names and values alternate. Secrets among them are for plugins' clients and never
     * logged.
     */
    static String[] flat(Map<String, String> map) {
        return map.entrySet().stream().flatMap(e -> List.of(e.getKey(), e.getValue()).stream()).toArray(String[]::new);
    }

    /** Only the names, since values may be secrets. */
    @Override
    public String toString() {
        return "HostConfig" + properties.keySet();
    }
}
