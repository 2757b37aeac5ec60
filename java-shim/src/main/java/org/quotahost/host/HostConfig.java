package org.quotahost.host;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.quotahost.cluster.BrokerClient;
import org.quotahost.cluster.BrokerPrincipal;
import org.quotahost.util.BrokerConfigs;

/**
 * The broker properties that the host is given: those under the prefix, a few of the broker's own, and how a client
 * reaches it (BrokerClient).
 */
public record HostConfig(Map<String, String> properties, Map<String, String> broker, Map<String, Object> client) {
    private static final String CLASS = BrokerConfigs.PREFIX + "class";
    private static final List<String> OF_THE_BROKER = List.of(
            "node.id", "broker.id", "process.roles", "log.dirs", "log.dir", "quota.window.num", "quota.window.size.seconds");

    public static HostConfig of(Map<String, ?> configs) {
        Map<String, String> properties = new TreeMap<>();
        Map<String, String> broker = new TreeMap<>();
        configs.forEach((name, value) -> {
            if (name.startsWith(BrokerConfigs.PREFIX) && !name.equals(CLASS)) properties.put(name, BrokerConfigs.text(value));
            if (OF_THE_BROKER.contains(name)) broker.put(name, BrokerConfigs.text(value));
        });
        broker.put("inter.broker.principals", String.join("\n", BrokerPrincipal.names(configs)));
        return new HostConfig(properties, broker, BrokerClient.of(configs));
    }

    String executable() {
        return properties.getOrDefault(BrokerConfigs.PREFIX + "python.executable", "python3");
    }

    /** Names and values alternate; secrets among them are for the plugin's own client and never printed. */
    static String[] flat(Map<String, String> map) {
        return map.entrySet().stream().flatMap(e -> List.of(e.getKey(), e.getValue()).stream()).toArray(String[]::new);
    }

    /** Values may be secrets. */
    @Override
    public String toString() {
        return "HostConfig" + properties.keySet();
    }
}
